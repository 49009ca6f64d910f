//===- judge.cpp - places, order, values --------------------------------------------------------------===//
#include "runtime/judge/judge.h"
#include "runtime/judge/order.h"
#include <set>

namespace zero::judge {
namespace {

std::string range(uint64_t begin, uint64_t end) { return "bytes " + std::to_string(begin) + " to " + std::to_string(end); }

class Judge {
public:
  Judge(const Problem &problem, size_t most) : problem(problem), most(most), history(problem.arenas.size()), reach(problem.arenas.size()) {}

  Judged run() {
    holdAgainstAll();
    return {std::move(found), std::move(order), std::move(reach)};
  }

private:
  void holdAgainstAll() {
    if (!checkPlaces() || !checkLives()) return;
    order = orderOf(problem);
    if (!order.stuck.empty()) return report("steps wait for each other in a cycle: " + order.stuck);
    useful.resize(problem.steps.size());
    for (uint32_t step : order.sequence) replay(step);
    checkResults();
    for (uint32_t step = 0; step < problem.steps.size(); ++step)
      if (!useful[step] && writesAnything(step))
        report(name(step) + " is a dead store: nobody reads what it writes before it is overwritten");
  }

  void report(const std::string &sentence) {
    if (found.size() < most) found.push_back(problem.name.empty() ? sentence : "@" + problem.name + ": " + sentence);
  }
  std::string name(uint32_t step) const { return nameOf(problem, step); }
  std::string quoted(uint32_t buffer) const { return "'" + problem.buffers[buffer].name + "'"; }

  /// Buffers lie in their arenas, and two live at once share no byte: a sweep over the steps with the live set by offset.
  bool checkPlaces() {
    struct Event {
      uint64_t time;
      bool opens;
      uint32_t buffer;
    };
    std::vector<Event> events;
    for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer &b = problem.buffers[i];
      if (b.bytes == 0) continue;
      if (b.arena >= problem.arenas.size() || b.offset > problem.arenas[b.arena].bytes ||
          b.bytes > problem.arenas[b.arena].bytes - b.offset) {
        report("buffer " + quoted(i) + " ends beyond its arena");
        continue;
      }
      if (const Arena &arena = problem.arenas[b.arena]; b.offset % arena.alignment)
        report("buffer " + quoted(i) + " starts at byte " + std::to_string(b.offset) + " of arena '" + arena.name +
               "', which is not a multiple of " + std::to_string(arena.alignment));
      // A persistent buffer lives before the first and after the last step.
      events.push_back({b.persistent ? 0 : 2 * uint64_t(b.first) + 1, true, i});
      events.push_back({b.persistent ? ~0ull : 2 * uint64_t(b.last) + 2, false, i});
    }
    std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
      return std::tie(a.time, a.opens, a.buffer) < std::tie(b.time, b.opens, b.buffer); // at one time, close before open
    });
    std::vector<std::map<uint64_t, uint32_t>> live(problem.arenas.size());
    for (const Event &e : events) {
      const Buffer &b = problem.buffers[e.buffer];
      auto &here = live[b.arena];
      if (!e.opens) {
        if (auto it = here.find(b.offset); it != here.end() && it->second == e.buffer) here.erase(it);
        continue;
      }
      auto next = here.lower_bound(b.offset);
      uint32_t clash = kNobody;
      if (next != here.end() && next->first < b.offset + b.bytes)
        clash = next->second;
      else if (next != here.begin() && std::prev(next)->first + problem.buffers[std::prev(next)->second].bytes > b.offset)
        clash = std::prev(next)->second;
      if (clash != kNobody)
        report("buffers " + quoted(clash) + " and " + quoted(e.buffer) + " are alive together and share bytes of arena '" +
               problem.arenas[b.arena].name + "'");
      else
        here.emplace(b.offset, e.buffer);
    }
    return found.empty();
  }

  /// Accesses lie inside their buffer and its life.
  bool checkLives() {
    for (uint32_t s = 0; s < problem.steps.size(); ++s)
      for (const Access &a : problem.steps[s].accesses) {
        const Buffer &b = problem.buffers[a.buffer];
        if (a.begin > a.end || a.stop > b.bytes)
          report(name(s) + " touches " + range(a.begin, a.stop) + " of buffer " + quoted(a.buffer) + ", which has " +
                 std::to_string(b.bytes));
        else if (!b.persistent && (s < b.first || s > b.last))
          report(name(s) + " touches buffer " + quoted(a.buffer) + " outside its life, steps " + std::to_string(b.first) + " to " +
                 std::to_string(b.last));
      }
    for (const Result &r : problem.results)
      if (r.end > problem.buffers[r.buffer].bytes || !problem.buffers[r.buffer].persistent)
        report("the " + r.name + " is no part of a persistent buffer");
    return found.empty();
  }

  /// Hold a step's accesses against everything that touched the same bytes; then record them. What any rank touches counts for the order,
  /// since the other ranks' parts of a buffer may share bytes with what is at the same place on all of them; for values this one's does.
  void replay(uint32_t s) {
    const Step &step = problem.steps[s];
    for (const Access &a : step.accesses) {
      visit(reach, a.buffer, a.first, a.stop, [&](const Interval &past) {
        conflict(past.writer, s, a, "write");
        if (a.writes)
          for (uint32_t reader : past.readers) conflict(reader, s, a, "read");
      });
      visit(history, a.buffer, a.begin, a.end, [&](const Interval &past) {
        if (!a.writes && past.writer != kNobody && past.writer != s) useful[past.writer] = true;
        if (!problem.isHost(s) && !a.writes && past.buffer != a.buffer && !(lasts(a.buffer) && past.buffer == kNobody))
          report(name(s) + " reads buffer " + quoted(a.buffer) +
                 (past.buffer == kNobody ? std::string(" before anything is written to it")
                                         : ", but its bytes were last written through buffer " + quoted(past.buffer)));
      });
    }
    for (bool writes : {false, true}) // a step reads before it writes
      for (const Access &a : step.accesses)
        if (a.writes == writes) {
          const Buffer &b = problem.buffers[a.buffer];
          if (writes) {
            history[b.arena].write(b.offset + a.begin, b.offset + a.end, s, a.buffer);
            reach[b.arena].write(b.offset + a.first, b.offset + a.stop, s, a.buffer);
          } else {
            history[b.arena].read(b.offset + a.begin, b.offset + a.end, s, step.lane);
            reach[b.arena].read(b.offset + a.first, b.offset + a.stop, s, step.lane);
          }
        }
  }

  void conflict(uint32_t earlier, uint32_t s, const Access &a, const char *what) {
    if (earlier == kNobody || earlier == s || order.before(earlier, s, problem)) return;
    if (reported.insert({earlier, s}).second)
      report(name(s) + (a.writes ? " writes" : " reads") + " buffer " + quoted(a.buffer) + " without waiting for the " + what +
             " of the same bytes by " + name(earlier));
  }

  /// What the host reads after the program was written by the program.
  void checkResults() {
    for (const Result &r : problem.results)
      visit(history, r.buffer, r.begin, r.end, [&](const Interval &past) {
        if (past.buffer != r.buffer || past.writer == problem.host) report("no step writes the " + r.name + ", buffer " + quoted(r.buffer));
      });
  }

  /// Holds a value from before the program; a result does not.
  bool lasts(uint32_t buffer) const {
    return problem.buffers[buffer].persistent && !problem.buffers[buffer].stale &&
           std::none_of(problem.results.begin(), problem.results.end(), [&](const Result &r) { return r.buffer == buffer; });
  }

  /// Something besides state that outlives the program, and besides nothing at all.
  bool writesAnything(uint32_t s) const {
    bool any = false;
    for (const Access &a : problem.steps[s].accesses)
      if (a.writes && problem.buffers[a.buffer].persistent)
        return false;
      else
        any |= a.writes;
    return any;
  }

  template <typename Visit> void visit(std::vector<History> &of, uint32_t buffer, uint64_t begin, uint64_t end, Visit &&each) {
    const Buffer &b = problem.buffers[buffer];
    of[b.arena].visit(b.offset + begin, b.offset + end, each);
  }

  const Problem &problem;
  size_t most;
  std::vector<std::string> found;
  HappensBefore order;
  std::vector<History> history, reach; // by arena: what this rank touched, and what any rank did
  std::vector<bool> useful;            // by step: somebody reads what it writes
  std::set<std::pair<uint32_t, uint32_t>> reported;
};

} // namespace

Judged judge(const Problem &problem, size_t most) { return Judge(problem, most).run(); }

} // namespace zero::judge

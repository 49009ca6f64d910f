//===- judge.cpp - places, order, values, ranks -----------------------------------------------------===//
#include "runtime/judge/judge.h"
#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace zero::judge {
namespace {

constexpr uint32_t kLaneCount = 8;
constexpr uint32_t kNobody = ~0u;

/// Per lane, how many of its steps happened before.
using Clock = std::array<uint64_t, kLaneCount>;

std::string range(uint64_t begin, uint64_t end) { return "bytes " + std::to_string(begin) + " to " + std::to_string(end); }

/// Who touched a stretch of an arena last.
struct Stretch {
  uint64_t end = 0;
  uint32_t writer = kNobody;                // step
  uint32_t buffer = kNobody;                // it wrote through this buffer
  std::array<uint32_t, kLaneCount> readers; // since then, the latest of each lane
  Stretch() { readers.fill(kNobody); }
};

class Judge {
public:
  Judge(const Problem &problem, size_t most) : problem(problem), most(most), history(problem.arenas.size()) {}

  std::vector<std::string> run() {
    if (checkPlaces() && checkLives() && orderSteps())
      for (uint32_t step : order) replay(step);
    return std::move(found);
  }

private:
  void report(const std::string &sentence) {
    if (found.size() < most) found.push_back("@" + problem.name + ": " + sentence);
  }
  std::string name(uint32_t step) const {
    return "step " + std::to_string(step) + " '" + problem.steps[step].name + "' (" + laneName(problem.steps[step].lane) + ")";
  }
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
        report("buffer " + quoted(i) + " ends behind its arena");
        continue;
      }
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
        if (a.begin > a.end || a.end > b.bytes)
          report(name(s) + " touches " + range(a.begin, a.end) + " of buffer " + quoted(a.buffer) + ", which has " +
                 std::to_string(b.bytes));
        else if (!b.persistent && (s < b.first || s > b.last))
          report(name(s) + " touches buffer " + quoted(a.buffer) + " outside its life, steps " + std::to_string(b.first) + " to " +
                 std::to_string(b.last));
      }
    return found.empty();
  }

  /// Run the lanes against each other until all steps are done or none can move; give each step its clock.
  bool orderSteps() {
    std::array<std::vector<uint32_t>, kLaneCount> lanes;
    for (uint32_t s = 0; s < problem.steps.size(); ++s) lanes[problem.steps[s].lane].push_back(s);
    std::array<Clock, kLaneCount> now{}; // clock of the latest step of each lane
    std::array<size_t, kLaneCount> done{};
    std::array<std::vector<Clock>, kLaneCount> past;
    clocks.resize(problem.steps.size());
    ticks.resize(problem.steps.size());
    auto ready = [&](uint32_t lane) {
      if (done[lane] == lanes[lane].size()) return false;
      const auto &waits = problem.steps[lanes[lane][done[lane]]].waits;
      return std::all_of(waits.begin(), waits.end(), [&](const Wait &w) { return done[w.lane] >= w.tick; });
    };
    while (true) {
      uint32_t s = kNobody; // of the steps that may run, the first in program order
      for (uint32_t lane = 0; lane < kLaneCount; ++lane)
        if (ready(lane)) s = std::min(s, lanes[lane][done[lane]]);
      if (s == kNobody) break;
      uint32_t lane = problem.steps[s].lane;
      Clock clock = now[lane];
      for (const Wait &w : problem.steps[s].waits)
        if (w.tick > 0)
          for (uint32_t l = 0; l < kLaneCount; ++l) clock[l] = std::max(clock[l], past[w.lane][w.tick - 1][l]);
      clocks[s] = clock; // what happened before s
      ticks[s] = clock[lane] = ++done[lane];
      now[lane] = clock;
      past[lane].push_back(clock);
      order.push_back(s);
    }
    if (order.size() == problem.steps.size()) return true;
    std::string stuck;
    for (uint32_t lane = 0; lane < kLaneCount; ++lane)
      if (done[lane] < lanes[lane].size()) {
        uint32_t s = lanes[lane][done[lane]];
        for (const Wait &w : problem.steps[s].waits)
          if (done[w.lane] < w.tick)
            stuck += (stuck.empty() ? "" : "; ") + name(s) + " waits for tick " + std::to_string(w.tick) + " of " + laneName(w.lane) +
                     (w.tick > lanes[w.lane].size() ? ", which has only " + std::to_string(lanes[w.lane].size()) + " steps" : "");
      }
    report("steps wait for each other in a cycle: " + stuck);
    return false;
  }

  bool before(uint32_t a, uint32_t b) const { return clocks[b][problem.steps[a].lane] >= ticks[a]; }

  /// Hold a step's accesses against everything that touched the same bytes; then record them.
  void replay(uint32_t s) {
    for (const Access &a : problem.steps[s].accesses)
      visit(a, [&](uint64_t, uint64_t, const Stretch &past) {
        conflict(past.writer, s, a, "write");
        if (a.writes)
          for (uint32_t reader : past.readers) conflict(reader, s, a, "read");
        const Buffer &b = problem.buffers[a.buffer];
        if (!a.writes && past.buffer != a.buffer && !(b.persistent && past.buffer == kNobody))
          report(name(s) + " reads buffer " + quoted(a.buffer) +
                 (past.buffer == kNobody ? std::string(" before anything is written to it")
                                         : ", but its bytes were last written through buffer " + quoted(past.buffer)));
      });
    for (bool writes : {false, true}) // a step reads before it writes
      for (const Access &a : problem.steps[s].accesses)
        if (a.writes == writes) record(a, s);
  }

  void conflict(uint32_t earlier, uint32_t s, const Access &a, const char *what) {
    if (earlier == kNobody || earlier == s || before(earlier, s)) return;
    if (reported.insert({earlier, s}).second)
      report(name(s) + (a.writes ? " writes" : " reads") + " buffer " + quoted(a.buffer) + " without waiting for the " + what +
             " of the same bytes by " + name(earlier));
  }

  template <typename Visit> void visit(const Access &a, Visit &&each) {
    const Buffer &b = problem.buffers[a.buffer];
    uint64_t begin = b.offset + a.begin, end = b.offset + a.end;
    auto &map = history[b.arena];
    split(map, begin);
    split(map, end);
    static const Stretch fresh;
    uint64_t at = begin;
    for (auto it = map.lower_bound(begin); at < end;) {
      if (it == map.end() || it->first > at) {
        uint64_t stop = it == map.end() ? end : std::min(end, it->first);
        each(at, stop, fresh);
        at = stop;
      } else {
        each(at, it->second.end, it->second);
        at = it->second.end;
        ++it;
      }
    }
  }

  void record(const Access &a, uint32_t s) {
    const Buffer &b = problem.buffers[a.buffer];
    uint64_t begin = b.offset + a.begin, end = b.offset + a.end;
    auto &map = history[b.arena];
    if (begin == end) return;
    if (a.writes) {
      split(map, begin);
      split(map, end);
      map.erase(map.lower_bound(begin), map.lower_bound(end));
      Stretch &written = map[begin];
      written.end = end;
      written.writer = s;
      written.buffer = a.buffer;
      return;
    }
    std::vector<std::pair<uint64_t, uint64_t>> gaps;
    visit(a, [&](uint64_t from, uint64_t to, const Stretch &past) {
      if (past.end == 0) gaps.push_back({from, to});
    });
    for (auto [from, to] : gaps) map[from].end = to;
    for (auto it = map.lower_bound(begin); it != map.end() && it->first < end; ++it) it->second.readers[problem.steps[s].lane] = s;
  }

  static void split(std::map<uint64_t, Stretch> &map, uint64_t at) {
    auto it = map.upper_bound(at);
    if (it == map.begin()) return;
    --it;
    if (it->first >= at || it->second.end <= at) return;
    Stretch tail = it->second;
    it->second.end = at;
    map.emplace(at, tail);
  }

  const Problem &problem;
  size_t most;
  std::vector<std::string> found;
  std::vector<uint32_t> order;
  std::vector<Clock> clocks;
  std::vector<uint64_t> ticks;
  std::vector<std::map<uint64_t, Stretch>> history; // per arena, by first byte
  std::set<std::pair<uint32_t, uint32_t>> reported;
};

} // namespace

std::vector<std::string> check(const Problem &problem, size_t most) { return Judge(problem, most).run(); }

std::vector<std::string> checkRanks(const std::vector<Problem> &ranks) {
  std::vector<std::string> found;
  for (uint32_t lane = 0; lane < kLaneCount; ++lane) {
    std::vector<std::vector<std::string>> called;
    for (const Problem &p : ranks) {
      called.emplace_back();
      for (const Step &s : p.steps)
        if (s.lane == lane && !s.collective.empty()) called.back().push_back(s.collective);
    }
    for (size_t r = 1; r < called.size(); ++r)
      for (size_t i = 0; i < std::max(called[0].size(), called[r].size()); ++i) {
        auto at = [&](size_t rank) { return i < called[rank].size() ? called[rank][i] : std::string("nothing"); };
        if (at(0) == at(r)) continue;
        found.push_back("ranks disagree on collective " + std::to_string(i) + " of lane " + laneName(lane) + ": '" + ranks[0].name +
                        "' calls " + at(0) + ", '" + ranks[r].name + "' calls " + at(r));
        break;
      }
  }
  return found;
}

std::vector<std::string> checkPlan(const plan::Plan &plan) {
  std::vector<std::string> found;
  std::set<uint64_t> ranks{0, std::min<uint64_t>(1, plan.world() - 1), plan.world() - 1};
  for (int program = 0; program < plan.programs_size(); ++program) {
    std::vector<Problem> each;
    for (uint64_t rank : ranks) {
      each.push_back(fromPlan(plan, program, rank));
      for (std::string &sentence : check(each.back())) found.push_back("rank " + std::to_string(rank) + ": " + sentence);
    }
    for (std::string &sentence : checkRanks(each)) found.push_back("@" + plan.programs(program).name() + ": " + sentence);
  }
  return found;
}

} // namespace zero::judge

//===- entry.cpp - lanes that run on from one program into the next ----------------------------------===//
// What one program does has been judged by then. Here only pairs of accesses count of which one is the earlier program's: a step of the
// later one that knows all of the earlier one to be complete can be in conflict with none of it, and neither can what follows that step.
#include "runtime/judge/judge.h"
#include "runtime/plan/lanes.h"
#include <set>

namespace zero::judge {
namespace {

class Boundary {
public:
  Boundary(const Problem &before, Judged &left, const Problem &next, const Judged &judged, const Entry &entry, size_t most)
      : before(before), left(left), next(next), judged(judged), entry(entry), most(most), known(next.steps.size()) {}

  std::vector<std::string> run() {
    std::array<std::vector<uint32_t>, kLaneCount> earlier = lanesOf(before), later = lanesOf(next);
    Clock all{};
    for (uint32_t lane = 0; lane < kLaneCount; ++lane) all[lane] = earlier[lane].size();
    std::array<uint64_t, kLaneCount> done{};
    auto wait = entry.waits.begin();
    std::vector<std::vector<Wait>> joins(next.steps.size());
    for (; wait != entry.waits.end(); ++wait) joins[wait->first].push_back(wait->second);
    joins[next.host] = entry.inputWaits;
    for (uint32_t s : judged.order.sequence) {
      uint32_t lane = next.steps[s].lane;
      Clock clock{}; // what of the earlier program is complete when the step starts
      if (done[lane])
        clock = known[later[lane][done[lane] - 1]];
      else if (!earlier[lane].empty())
        clock = completion(earlier[lane].back());
      ++done[lane];
      for (const Wait &w : next.steps[s].waits)
        if (countOf(w) > 0) raise(clock, known[later[w.lane][countOf(w) - 1]]);
      for (const Wait &w : joins[s]) {
        if (countOf(w) > earlier[w.lane].size()) {
          report(name(next, s) + " waits for tick " + std::to_string(w.tick) + " of " + plan::laneName(w.lane) + ", which has only " +
                 std::to_string(earlier[w.lane].size() - (w.lane == plan::COMPUTE)) + " there");
          continue;
        }
        if (countOf(w) > 0) raise(clock, completion(earlier[w.lane][countOf(w) - 1]));
      }
      known[s] = clock;
      if (clock != all) replay(s);
    }
    return std::move(found);
  }

private:
  /// What is known when a step of the earlier program is complete.
  Clock completion(uint32_t step) const {
    Clock clock = left.order.clocks[step];
    clock[before.steps[step].lane] = left.order.ticks[step];
    return clock;
  }

  void replay(uint32_t s) {
    for (const Access &a : next.steps[s].accesses) {
      const Buffer &b = next.buffers[a.buffer];
      left.reach[b.arena].visit(b.offset + a.first, b.offset + a.stop, [&](const Interval &past) {
        conflict(past.writer, s, a, "write");
        if (a.writes)
          for (uint32_t reader : past.readers) conflict(reader, s, a, "read");
      });
    }
  }

  void conflict(uint32_t earlier, uint32_t s, const Access &a, const char *what) {
    if (earlier == kNobody || known[s][before.steps[earlier].lane] >= left.order.ticks[earlier]) return;
    if (reported.insert({earlier, s}).second)
      report(name(next, s) + (a.writes ? " writes" : " reads") + " buffer '" + next.buffers[a.buffer].name + "' without waiting for the " +
             what + " of the same bytes by " + name(before, earlier) + " of the program before");
  }

  std::string name(const Problem &problem, uint32_t step) const { return nameOf(problem, step); }
  void report(const std::string &sentence) {
    if (found.size() < most) found.push_back("@" + next.name + " after @" + before.name + ": " + sentence);
  }

  const Problem &before;
  Judged &left;
  const Problem &next;
  const Judged &judged;
  const Entry &entry;
  size_t most;
  std::vector<Clock> known; // by step of the later program: ticks of the earlier one that are complete when it starts
  std::vector<std::string> found;
  std::set<std::pair<uint32_t, uint32_t>> reported;
};

} // namespace

std::vector<std::string> checkEntry(const Problem &before, Judged &left, const Problem &next, const Judged &judged, const Entry &entry,
                                    size_t most) {
  return Boundary(before, left, next, judged, entry, most).run();
}

std::vector<std::string> checkAll(const std::vector<Problem> &problems) {
  std::vector<std::string> found;
  std::vector<Judged> each;
  for (const Problem &problem : problems) {
    each.push_back(judge(problem));
    found.insert(found.end(), each.back().found.begin(), each.back().found.end());
  }
  bool programs = std::ranges::any_of(problems, &Problem::another);
  if (!programs)
    for (std::string &sentence : checkRanks(problems)) found.push_back(std::move(sentence));
  if (!programs || !found.empty()) return found; // entries are of programs that hold
  for (size_t n = 0; n < problems.size(); ++n)
    for (const Entry &entry : problems[n].entries)
      for (size_t b = 0; b < problems.size(); ++b)
        if (problems[b].name == entry.after)
          for (std::string &sentence : checkEntry(problems[b], each[b], problems[n], each[n], entry)) found.push_back(std::move(sentence));
  return found;
}

} // namespace zero::judge

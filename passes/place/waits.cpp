//===- waits.cpp - which steps must wait for which --------------------------------------------------===//
#include "passes/place/waits.h"
#include <algorithm>
#include <map>

namespace zero::place {
namespace {

/// Who touched a range of bytes last, as ticks by lane (0: nobody).
struct Touched {
  int64_t end = 0;
  Clock writes{}, reads{};
};

/// The ranges of one arena, by their first byte; they never overlap.
class Ranges {
public:
  /// Raises `needed` to the ticks an access must wait for, and records the access as step `tick` of `lane`.
  void touch(const MemoryAccess &access, int lane, int64_t tick, Clock &needed) {
    split(access.begin);
    split(access.end);
    int64_t at = access.begin;
    for (auto it = ranges.lower_bound(access.begin); at < access.end;) {
      if (it == ranges.end() || it->first > at) { // bytes nobody has touched yet
        int64_t gapEnd = it == ranges.end() ? access.end : std::min(access.end, it->first);
        it = ranges.emplace_hint(it, at, Touched{gapEnd, {}, {}});
      }
      Touched &range = it->second;
      for (int other = 0; other < kLanes; ++other) {
        needed[other] = std::max(needed[other], range.writes[other]);
        if (access.writes) needed[other] = std::max(needed[other], range.reads[other]);
      }
      if (access.writes) { // all before it is ordered before it, so it alone stands for them
        range.writes = {};
        range.reads = {};
        range.writes[lane] = tick;
      } else {
        range.reads[lane] = tick;
      }
      at = range.end;
      ++it;
    }
    if (access.writes) join(access);
  }

private:
  void split(int64_t at) {
    auto next = ranges.upper_bound(at);
    if (next == ranges.begin()) return;
    auto range = std::prev(next);
    if (range->first == at || range->second.end <= at) return;
    Touched right = range->second;
    range->second.end = at;
    ranges.emplace_hint(next, at, right);
  }

  /// A write leaves one range, so the map does not grow with the number of steps.
  void join(const MemoryAccess &access) {
    auto first = ranges.find(access.begin);
    first->second.end = access.end;
    ranges.erase(std::next(first), ranges.lower_bound(access.end));
  }

  std::map<int64_t, Touched> ranges;
};

void raise(Clock &clock, const Clock &other) {
  for (int lane = 0; lane < kLanes; ++lane) clock[lane] = std::max(clock[lane], other[lane]);
}

/// Steps of each lane so far, and what is known when each is complete.
struct Lanes {
  std::array<std::vector<Clock>, kLanes> complete;

  int64_t ticks(int lane) const { return complete[lane].size(); }
  Clock start(int lane) const { return complete[lane].empty() ? Clock{} : complete[lane].back(); }
  void wait(Clock &clock, LaneWait wait) const {
    if (wait.tick > 0) raise(clock, complete[wait.lane][wait.tick - 1]);
  }
  void finish(int lane, Clock clock) {
    clock[lane] = ticks(lane) + 1;
    complete[lane].push_back(clock);
  }
};

} // namespace

std::vector<std::vector<LaneWait>> findWaits(const std::vector<LaneStep> &steps) {
  std::vector<std::vector<LaneWait>> waits(steps.size());
  std::map<int, Ranges> arenas;
  Lanes lanes;
  for (size_t i = 0; i < steps.size(); ++i) {
    const LaneStep &step = steps[i];
    int64_t tick = lanes.ticks(step.lane) + 1;
    Clock needed{}, known = lanes.start(step.lane);
    for (const MemoryAccess &access : step.accesses)
      if (access.begin < access.end) arenas[access.arena].touch(access, step.lane, tick, needed);
    needed[step.lane] = 0; // lane order, or another access of the same step
    std::vector<LaneWait> candidates;
    for (int lane = 0; lane < kLanes; ++lane)
      if (needed[lane] > known[lane]) candidates.push_back({lane, needed[lane]});
    for (const LaneWait &candidate : candidates) {
      bool implied = std::any_of(candidates.begin(), candidates.end(), [&](const LaneWait &other) {
        return other.lane != candidate.lane && lanes.complete[other.lane][other.tick - 1][candidate.lane] >= candidate.tick;
      });
      if (!implied) waits[i].push_back(candidate);
    }
    for (const LaneWait &wait : waits[i]) lanes.wait(known, wait);
    lanes.finish(step.lane, known);
  }
  return waits;
}

std::vector<Clock> clocksOf(const std::vector<LaneStep> &steps, const std::vector<std::vector<LaneWait>> &waits) {
  std::vector<Clock> clocks;
  Lanes lanes;
  for (size_t i = 0; i < steps.size(); ++i) {
    Clock clock = lanes.start(steps[i].lane);
    for (const LaneWait &wait : waits[i]) {
      if (wait.tick < 0 || wait.tick > lanes.ticks(wait.lane)) return {};
      lanes.wait(clock, wait);
    }
    clocks.push_back(clock);
    lanes.finish(steps[i].lane, clock);
  }
  return clocks;
}

} // namespace zero::place

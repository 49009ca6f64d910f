//===- past.h - what steps have left behind them -----------------------------------------------------===//
#pragma once
#include "passes/place/waits.h"
#include <algorithm>
#include <map>

namespace zero::place {

/// Who touched a range of bytes last, as ticks by lane (0: nobody).
struct Touched {
  int64_t end = 0;
  Clock writes{}, reads{};

  /// What somebody who reads these bytes, or writes them, must wait for.
  void raise(bool ifWritten, Clock &needed) const {
    for (int lane = 0; lane < kLanes; ++lane) {
      needed[lane] = std::max(needed[lane], writes[lane]);
      if (ifWritten) needed[lane] = std::max(needed[lane], reads[lane]);
    }
  }
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
      range.raise(access.writes, needed);
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

  /// Raises `needed` to the ticks that an access of a later program must wait for.
  void visit(const MemoryAccess &access, Clock &needed) const {
    auto it = ranges.upper_bound(access.begin);
    if (it != ranges.begin() && std::prev(it)->second.end > access.begin) --it;
    for (; it != ranges.end() && it->first < access.end; ++it) it->second.raise(access.writes, needed);
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

inline void raise(Clock &clock, const Clock &other) {
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

/// All steps of a program.
struct Past {
  std::map<int, Ranges> arenas;
  Lanes lanes;
};

} // namespace zero::place

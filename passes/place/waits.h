//===- waits.h - which steps must wait for which: plain data and the algorithm ---------------------===//
// Steps stand in one linear order; each belongs to a lane, whose steps run in that order. Two accesses conflict if they share a
// byte and one of them writes. If their steps are on different lanes, the later one must be known to start after the earlier
// one is complete: by a wait of its own, or by one that an earlier step of its lane, or a step it waits for, has made.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace zero::place {

inline constexpr int kLanes = 8;

struct MemoryAccess {
  int arena;
  int64_t begin, end; // bytes, half-open; over all ranks if the address depends on the rank
  bool writes;
};

struct LaneStep {
  int lane;
  std::vector<MemoryAccess> accesses;
};

/// A step waits until `tick` steps of the lane are complete.
struct LaneWait {
  int lane;
  int64_t tick;
  bool operator==(const LaneWait &) const = default;
};

/// For each step the waits it needs, none of which follows from the others. No wrap-around: all lanes are drained between programs.
std::vector<std::vector<LaneWait>> findWaits(const std::vector<LaneStep> &steps);

/// What is known to be complete when a step starts: ticks by lane.
using Clock = std::array<int64_t, kLanes>;
/// The clock at the start of each step, following lane order and waits. Waits for steps that come later in the linear order (which could
/// deadlock) yield an empty result.
std::vector<Clock> clocksOf(const std::vector<LaneStep> &steps, const std::vector<std::vector<LaneWait>> &waits);

} // namespace zero::place

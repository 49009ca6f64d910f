//===- waits.h - which steps must wait for which: plain data and the algorithm ---------------------===//
// Steps stand in one linear order; each belongs to a lane, whose steps run in that order. Two accesses conflict if they share a
// byte and one of them writes. If their steps are on different lanes, the later one must be known to start after the earlier
// one is complete: by a wait of its own, or by one that an earlier step of its lane, or a step it waits for, has made.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace zero::place {

inline constexpr int kLanes = 11;

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

/// Who touched which bytes last in a program, and what is known when each of its steps is complete (past.h).
struct Past;

/// For each step the waits it needs, none of which follows from the others; and what the steps leave in `past`, which is empty before.
std::vector<std::vector<LaneWait>> findWaits(const std::vector<LaneStep> &steps, Past &past);
std::vector<std::vector<LaneWait>> findWaits(const std::vector<LaneStep> &steps);

/// Where lanes run on from the program that has left `before` into the one of `steps`, whose own waits are `waits`: for each step the waits
/// it needs for ticks of the earlier program, none of which follows from the others. The first step of a lane follows the last one that the
/// lane had there.
std::vector<std::vector<LaneWait>> findEntryWaits(const Past &before, const std::vector<LaneStep> &steps,
                                                  const std::vector<std::vector<LaneWait>> &waits);

/// What is known to be complete when a step starts: ticks by lane.
using Clock = std::array<int64_t, kLanes>;
/// The clock at the start of each step, following lane order and waits. Waits for steps that come later in the linear order (which could
/// deadlock) yield an empty result.
std::vector<Clock> clocksOf(const std::vector<LaneStep> &steps, const std::vector<std::vector<LaneWait>> &waits);

} // namespace zero::place

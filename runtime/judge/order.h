//===- order.h - which steps happen before which ------------------------------------------------------===//
#pragma once
#include "runtime/judge/history.h"
#include "runtime/judge/problem.h"

namespace zero::judge {

/// Per lane, how many of its steps happened before.
using Clock = std::array<uint64_t, kLaneCount>;

struct HappensBefore {
  std::vector<uint32_t> sequence; // one in which the steps can run
  std::vector<Clock> clocks;      // by step: what happened before it
  std::vector<uint64_t> ticks;    // by step: the tick of its lane when it is complete
  std::string stuck;              // which steps wait for each other; empty: all of them run

  bool before(uint32_t a, uint32_t b, const Problem &problem) const { return clocks[b][problem.steps[a].lane] >= ticks[a]; }
};

inline void raise(Clock &clock, const Clock &other) {
  for (uint32_t lane = 0; lane < kLaneCount; ++lane) clock[lane] = std::max(clock[lane], other[lane]);
}

/// How many steps of its lane a wait is for: what the host does before a program is the first of compute.
inline uint64_t countOf(const Wait &wait) { return wait.tick + (wait.lane == plan::COMPUTE); }

/// The steps of each lane in their order, with what the host does.
std::array<std::vector<uint32_t>, kLaneCount> lanesOf(const Problem &problem);

/// Runs the lanes against each other until all steps are done or none can move.
HappensBefore orderOf(const Problem &problem);

/// "step 3 'matmul' (compute)"
std::string nameOf(const Problem &problem, uint32_t step);

} // namespace zero::judge

//===- step_time.h - how long a plan's optimizer step takes --------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/machine.h"
#include "runtime/simulate/tasks.h"

namespace zero::simulate {

/// Of a rank that has the machine to itself, when all ranks are equally fast and come to their collectives together.
struct StepTime {
  double seconds = 0;                    // from one optimizer step to the next, in the middle of a run
  std::array<double, kLanes> busy{};     // of that, each lane, as if it had what it shares with others to itself
  std::array<double, kResources> used{}; // and all lanes that work with a resource

  double of(Resource resource) const { return used[resource]; }
  Resource busiest() const;
  /// Of the busiest resource: no order of the same steps takes less.
  double least() const { return of(busiest()); }
};

/// All micro-steps of an optimizer step, as a run submits them, clipped if `clips`, or as the plan has them alone. A plan without
/// updates takes no time.
StepTime timeOf(const plan::Plan &plan, const Machine &machine, bool clips);

} // namespace zero::simulate

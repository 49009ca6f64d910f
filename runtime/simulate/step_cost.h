//===- step_cost.h - what one step of a plan takes --------------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/machine.h"
#include "runtime/simulate/tasks.h"

namespace zero::simulate {

plan::Tier tierOf(const plan::Plan &plan, const plan::Ref &ref);
/// What a step works with.
Resource resourceOf(const plan::Plan &plan, const plan::Step &step);
/// Seconds of it alone.
double secondsOf(const plan::Plan &plan, const plan::Step &step, const Machine &machine);

} // namespace zero::simulate

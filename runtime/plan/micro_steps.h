// In what order a plan runs the micro-steps of an optimizer step: horizontal, a program for each of them, one after another; or vertical,
// all of them interleaved in one program.
#pragma once
#include "runtime/plan/plan.pb.h"

namespace zero::plan {

// How many of them a program holds.
inline uint64_t microStepsOf(const Plan &plan, const Program &program) {
  return plan.vertical() && program.role() == Program::STEP ? plan.accumulate() : 1;
}

// Whether one program is a whole optimizer step.
inline bool stepsInOneProgram(const Plan &plan) { return plan.vertical() || plan.accumulate() <= 1; }

} // namespace zero::plan

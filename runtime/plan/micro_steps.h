// What programs an optimizer step runs. Its micro-steps are in horizontal order, a program for each of them, one after another; or in
// vertical order, all of them interleaved in one program.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <algorithm>

namespace zero::plan {

// How many of them a program holds.
inline uint64_t microStepsOf(const Plan &plan, const Program &program) {
  return plan.vertical() && program.role() == Program::STEP ? plan.accumulate() : 1;
}

// Whether one program is a whole optimizer step.
inline bool stepsInOneProgram(const Plan &plan) { return plan.vertical() || plan.accumulate() <= 1; }

// Whether a run with `--clip`, or one without, finds its programs in the plan. One of both always does.
inline bool trains(const Plan &plan, bool clips) {
  return plan.scales_loss() || std::any_of(plan.programs().begin(), plan.programs().end(), [&](const Program &program) {
           return (program.role() == Program::STEP || program.role() == Program::LAST) && program.clips() == clips;
         });
}

} // namespace zero::plan

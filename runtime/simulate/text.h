//===- text.h - estimates for people --------------------------------------------------------------------===//
#pragma once
#include "runtime/simulate/step_time.h"
#include <string>

namespace zero::simulate {

/// "2.31 s", "0.0123 s": three digits.
std::string secondsText(double seconds);

/// "2.31 s for a step with --clip, no less than 1.60 s of the disk".
std::string estimateText(const StepTime &time, bool clips);

/// Of the step with and without --clip, the seconds of each lane, and of what several of them share; and the machine.
std::string timeText(const plan::Plan &plan, const Machine &machine);

} // namespace zero::simulate

//===- trace.h - the estimated timeline ------------------------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/machine.h"
#include <string>

namespace zero::simulate {

/// What every lane of a rank is estimated to do when, in four optimizer steps, in the format of zerorun --trace: for chrome://tracing and
/// Perfetto, and for measuredMachine, which finds in it the machine that was given, but for what the first run, which it does not count,
/// had of the disk beside the second. Where a step runs one program more than three times in a row, three stand for all.
std::string estimatedTrace(const plan::Plan &plan, const Machine &machine, bool clips);

} // namespace zero::simulate

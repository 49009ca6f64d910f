//===- measured.h - how fast a machine was in a run -----------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include <string>

namespace zero::simulate {

/// The numbers of machine.h that a run of the plan shows, as JSON, from the text of a trace (zerorun --trace) of which `name` is said in
/// sentences: of rank 0, without the first run of each program. Products and attention count their multiply-adds, everything else its
/// bytes; of lanes that had the disk together each had an equal part. What waits for other ranks tells nothing of a link: that is left out,
/// as is what the plan does not do. Throws zero::Error where the text is no trace, or that of another plan.
std::string measuredMachine(const plan::Plan &plan, const std::string &trace, const std::string &name);

} // namespace zero::simulate

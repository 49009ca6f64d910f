// zerorun: from options to trained weights.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/train/options.h"

namespace zero::runtime {

// Runs everything on this rank and returns the exit status (0, or 128 + the signal that stopped it). Throws CollectiveError or
// ReportedElsewhere (comm/collectively.h) if all ranks stop together; a rank that fails alone prints its sentence and ends them all.
int train(const TrainOptions &options, CommunicatorFactory &factory);

// The same with everything a process needs around it: connects, prints the sentence of a failure, ends all ranks.
int runProcess(const TrainOptions &options);

} // namespace zero::runtime

// `zerorun --tune`: measures the algorithms of the plan's products on this machine and writes them beside the plan.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/devices.h"
#include "runtime/train/options.h"

namespace zero::runtime {

// What lies beside a plan: the name of its table, and the text if it is there.
MeasuredTable tableBeside(const std::string &plan);

// Collective, of one rank: a machine of each kind is measured by itself. Returns the exit status.
int tune(const TrainOptions &options, Communicator &communicator);

} // namespace zero::runtime

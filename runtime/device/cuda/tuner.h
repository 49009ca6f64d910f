// Measures cuBLASLt's algorithms for products on this machine's GPU: what `zerorun --tune` writes beside the plan.
#pragma once
#include "runtime/device/devices.h"

namespace zero::runtime::cuda {

// The text of the table in `known`, if that has one, with what it lacks for this GPU and library: what was measured stays, so that a table
// copied from another plan, or made on another kind of GPU, is completed and not replaced. `say` is told a sentence for each product.
std::string tuneProducts(std::span<const DeviceProgram> programs, const MeasuredTable &known,
                         const std::function<void(const std::string &)> &say);

} // namespace zero::runtime::cuda

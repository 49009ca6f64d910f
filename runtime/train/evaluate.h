// The loss on held-out data.
#pragma once
#include "runtime/data/feeder.h"
#include "runtime/train/runs.h"
#include <functional>
#include <optional>

namespace zero::runtime {

// Collective. The weighted sum of the plan's losses, each the exact mean over all whole global batches of the set.
// Nothing if `goesOn`, which is asked before each batch and answers the same on every rank, ends it.
std::optional<double> evaluate(Runs &runs, uint32_t program, const Feeder &feeder, uint64_t rank, uint64_t step, uint64_t seed,
                               const std::function<bool()> &goesOn);

} // namespace zero::runtime

// The loss on held-out data.
#pragma once
#include "runtime/data/feeder.h"
#include "runtime/engine/engine.h"
#include <functional>
#include <optional>

namespace zero::runtime {

using LossTerms = std::array<double, plan::kMaxLosses>;

// Adds what a program has left of each of the plan's losses, times its weight.
void addLosses(const State &state, const plan::Program &program, LossTerms &terms);

// Collective. The weighted sum of the plan's losses, each the exact mean over all whole global batches of the set.
// Nothing if `goesOn`, which is asked before each batch and answers the same on every rank, ends it.
std::optional<double> evaluate(Engine &engine, const plan::Plan &plan, uint32_t program, const Feeder &feeder,
                               uint64_t step, uint64_t seed, const std::function<bool()> &goesOn);

} // namespace zero::runtime

//===- budget.h - what --device-memory decides -----------------------------------------------------===//
#pragma once
#include "passes/schedule/Passes.h"
#include "runtime/plan/plan.pb.h"
#include <string>

namespace zero::pipeline {

/// Bytes of one rank.
struct Need {
  uint64_t state = 0, work = 0;
  uint64_t total() const { return state + work; }
};
/// Of a module behind the place phase.
Need needOf(mlir::ModuleOp placed);

/// The schedule for a sharded module that makes most of `budget` bytes of one rank: buckets gathered early and gradients that travel
/// while others are computed cost memory, and so do gathered buckets that are kept instead of being gathered again. Without a schedule
/// that fits it is the one that needs least. Tries on copies of the module.
mlir::FailureOr<schedule::Options> scheduleFor(mlir::ModuleOp sharded, uint64_t budget, const schedule::Options &given);

/// "buckets gathered ahead: 1, …"
std::string describe(const schedule::Options &options);

/// Why the plan does not fit into `budget`: a smallest set of what must exist at once, and what would help.
std::string tooLarge(const plan::Plan &plan, uint64_t budget);

} // namespace zero::pipeline

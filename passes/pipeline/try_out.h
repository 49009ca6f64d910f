//===- try_out.h - what a choice needs and how long it takes ------------------------------------------===//
#pragma once
#include "passes/pipeline/search.h"
#include <atomic>

namespace zero::pipeline {

/// A choice, and the module as it is with it: with offsets and waits if it was placed, else without the programs that need less than
/// others.
struct TriedOut {
  Trial trial;
  mlir::OwningOpRef<mlir::ModuleOp> scheduled;
  uint64_t steps = 0; // of its programs
};

/// Shards and schedules a copy of the module, which has its kernels. With `places` its buffers get their offsets, and how long a step takes
/// is estimated; else live bytes are what it needs. Fails, with an error, as passes do; and half way, without one, when `ended` says so.
mlir::FailureOr<TriedOut> tryOut(mlir::ModuleOp fused, const Settings &settings, const Question &question, bool places,
                                 const std::atomic<bool> *ended = nullptr);

/// How long a step takes of what was not placed: every buffer lies at bytes of its own, which the module then says. Fails as passes do.
mlir::LogicalResult estimateApart(TriedOut &tried, const simulate::Machine &machine);

} // namespace zero::pipeline

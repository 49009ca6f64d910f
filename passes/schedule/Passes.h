//===- Passes.h - the schedule phase -------------------------------------------------------------===//
#pragma once
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace zero::schedule {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/schedule/Passes.h.inc"

struct Options {
  int64_t ahead = 2;                // buckets gathered beyond the one in use
  int64_t gatherBytes = 0;          // the same as a budget in bytes; 0: by `ahead`
  int64_t residentBytes = 0;        // gathered buckets kept beyond their uses
  int64_t earlyBytes = 0;           // buckets gathered beside the step before
  int64_t fetchAhead = 3;           // updates, of slices or buckets, whose state is fetched beyond the one under way
  int64_t deferredBytes = 0;        // of what updates beside the next step change on disk: written after all of them
  int64_t delay = 1;                // buckets whose gradient may travel while the next is computed
  bool keepShards = false;          // that were fetched to be gathered from all ranks, for their update
  std::string activations = "none"; // where they wait for backward: none (the device), host or disk
  int64_t activationBytes = -1;     // how much of them leaves at most; -1: all that may
  int64_t activationWork = 0;       // multiply-adds for each byte, during which one may leave though they are few steps; 0: by steps alone
  bool librarySums = false;         // sums over ranks are made by the device's library, in its own order
  bool tf32 = false;                // products of f32 multiply with 10 bits of fraction
};

/// plan-lower, plan-assign-lanes, plan-defer-products, plan-elide-gathers, plan-update-gathered, plan-offload-activations (if they wait
/// elsewhere), plan-hoist-gathers, plan-sink-updates, plan-spread-updates (if gradients may wait), plan-hoist-fetches, plan-overlap-updates
/// (if anything is), plan-defer-writes (if anything may be): the whole phase.
void buildPipeline(mlir::OpPassManager &pm, const Options &options);
/// All passes, and the phase as `zero-schedule-pipeline`.
void registerPasses();
} // namespace zero::schedule

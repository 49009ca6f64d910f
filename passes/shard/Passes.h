//===- Passes.h - the shard phase ----------------------------------------------------------------===//
#pragma once
#include "compiler/zero/Zero.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "passes/shard/uses.h"

namespace zero::shard {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/shard/Passes.h.inc"

struct Options {
  PartitionPassOptions partition;
  AssignTiersPassOptions tiers;
  ProgramsPassOptions programs;
  InsertMovementPassOptions movement;
  MergeGathersPassOptions merges;
};

/// zero-partition, zero-assign-tiers, zero-programs, zero-interleave (if one program holds several micro-steps), zero-insert-movement,
/// zero-merge-gathers, zero-verify-shard: the whole phase.
void buildPipeline(mlir::OpPassManager &pm, const Options &options);
/// All passes, and the phase as `zero-shard-pipeline`.
void registerPasses();
} // namespace zero::shard

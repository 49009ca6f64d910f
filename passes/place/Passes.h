//===- Passes.h - the place phase ----------------------------------------------------------------===//
#pragma once
#include "compiler/plan/Plan.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace zero::place {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/place/Passes.h.inc"

/// plan-mark-lifetimes, plan-assign-offsets, plan-insert-waits, plan-verify: the whole phase.
void buildPipeline(mlir::OpPassManager &pm);
/// All passes, and the phase as `zero-place-pipeline`.
void registerPasses();
} // namespace zero::place

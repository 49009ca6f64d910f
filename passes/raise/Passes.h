//===- Passes.h - raising: from what exporters write to what they mean ----------------------------===//
// Runs on the forward graph, before differentiation.
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace zero::raise {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/raise/Passes.h.inc"

/// Folding, simplification and all raising passes over every function of a module. With `kernels` alone to do attention, what they do not
/// do is expanded again.
void buildPipeline(mlir::OpPassManager &pm, bool kernels = false);
/// All passes, and the whole as `nn-raise-pipeline`.
void registerPasses();
} // namespace zero::raise

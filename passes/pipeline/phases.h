//===- phases.h - the passes of each phase, and what flags say to them ----------------------------------===//
// Private to the compilation.
#pragma once
#include "passes/pipeline/compile.h"
#include "passes/pipeline/search.h"

namespace zero::pipeline {

const char *nameOf(Phase phase);

/// What the flags decide. What they leave open stays on the device until a budget is named.
Settings settingsOf(const CompileOptions &options);
/// What the flags leave open; `tokens`: of a micro-step.
Question questionOf(const CompileOptions &options, int64_t tokens);

/// The passes of one phase. Each phase ends with a pass that checks what the next relies on.
void addPhase(mlir::OpPassManager &pm, Phase phase, const CompileOptions &options, const Settings &settings);
/// Runs the passes that `add` adds on the module, and says which runs (CompileOptions::progress). `verifies`: after each of them.
bool runPasses(mlir::ModuleOp module, const CompileOptions &options, llvm::function_ref<void(mlir::OpPassManager &)> add,
               bool verifies = true);
/// The first of Phase::Shard, from primitives to kernels. Gradients are rounded for their way between ranks; one rank's do not travel.
void addFusion(mlir::OpPassManager &pm, const CompileOptions &options);

} // namespace zero::pipeline

//===- changes.h - what passes did to the step, for people ----------------------------------------------===//
// Private to passes/pipeline.
#pragma once
#include "passes/pipeline/compile.h"
#include "passes/pipeline/search.h"

namespace zero::pipeline {

/// Numbers that a pass has left at the module; zeros if it did nothing.
uint64_t numberAt(mlir::ModuleOp module, const char *attribute, unsigned i);

/// Tiles of parameters and of tokens, and what is made again in backward, as decisions of the plan: (subject, choice, reason). `module` is
/// that from which the plan was made.
std::vector<std::array<std::string, 3>> changesOf(mlir::ModuleOp module, const plan::Plan &plan, const CompileOptions &options,
                                                  const Settings &settings);

} // namespace zero::pipeline

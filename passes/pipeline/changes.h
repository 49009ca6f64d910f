//===- changes.h - what passes did to the step, for people ----------------------------------------------===//
// Private to compile.cpp.
#pragma once
#include "passes/pipeline/compile.h"
#include "passes/pipeline/search.h"

namespace zero::pipeline {

/// Tiles of parameters and of tokens, and what is made again in backward, as decisions of the plan: (subject, choice, reason). `module` is
/// that from which the plan was made.
std::vector<std::array<std::string, 3>> changesOf(mlir::ModuleOp module, const plan::Plan &plan, const CompileOptions &options,
                                                  const Settings &settings);

} // namespace zero::pipeline

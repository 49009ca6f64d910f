//===- batch.h - which dimension the samples lie along ---------------------------------------------===//
#pragma once
#include "passes/train/losses.h"

namespace zero::train {

/// Gives every argument of `train` without a role one: "data" where its first dimension is the batch, else "shared"; and tells dropout
/// how many samples it covers.
///
/// The batch is the first dimension of the outputs that are compared with labels. One that the model has flattened, [samples * places, …],
/// gets it back where the graph shows that its rows are those of samples: `value` of its loss becomes [samples, places, …]. If the model
/// computes its loss itself, the batch is the first dimension that most of its inputs have. An input begins with the batch if its first
/// dimension has that size, unless the file says otherwise: a symbol that also names a later dimension of an input ([seq, seq]), or a fixed
/// 1 beside inputs with a symbol there.
/// Fails after an error with both shapes where an output and the inputs do not agree.
llvm::LogicalResult findBatch(mlir::func::FuncOp train, llvm::MutableArrayRef<Loss> losses);

} // namespace zero::train

//===- kernels.h - the kernels of model state, each made once per shape --------------------------===//
#pragma once
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/train/optimizer.h"

namespace zero::shard {

/// Names of nn.kernel functions in `module`, which are added where they are missing; [rows, columns] is how a kernel sees
/// a flat buffer.
mlir::FlatSymbolRefAttr updateKernel(mlir::ModuleOp module, train::OptimizerKind kind, int64_t rows, int64_t columns, bool clips);
mlir::FlatSymbolRefAttr accumulateKernel(mlir::ModuleOp module, int64_t rows, int64_t columns);
mlir::FlatSymbolRefAttr sumSquaresKernel(mlir::ModuleOp module, int64_t rows, int64_t columns);
/// tensor<n> -> tensor<1>, the sum of all.
mlir::FlatSymbolRefAttr sumKernel(mlir::ModuleOp module, int64_t n);

} // namespace zero::shard

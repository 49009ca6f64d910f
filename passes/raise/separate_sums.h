//===- separate_sums.h - what is added in place becomes a sum -----------------------------------------------===//
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace zero::raise {

/// "mask ? y + x : y", as "y[rows] += x" is written, becomes y + (mask ? x : 0), wherever the rows of y are read and added to.
void separateSums(mlir::func::FuncOp function);

} // namespace zero::raise

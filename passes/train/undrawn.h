//===- undrawn.h - evaluation without random numbers -----------------------------------------------------===//
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace zero::train {

/// What dropout leaves in training passes as it is; and where a number drawn uniformly says whether something is kept, as in stochastic
/// depth (drop path) and in dropout of whole channels, its probability stands in place of the 0 or 1: as these divide by it, that is what
/// PyTorch's eval() computes. Other numbers are drawn in evaluation, too.
void removeDraws(mlir::func::FuncOp function);

} // namespace zero::train

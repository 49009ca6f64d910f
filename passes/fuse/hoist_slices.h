//===- hoist_slices.h - slices before what moves the whole ------------------------------------------------===//
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace zero::fuse {

/// Where many slices of one size are all that is read of a tensor that is computed by elementwise operations or moved, they are taken of
/// what it is computed from: each part is computed from parts. Then slices tell what is read of tensors in memory (parts.h).
void hoistSlices(mlir::func::FuncOp function);

} // namespace zero::fuse

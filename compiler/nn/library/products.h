//===- products.h - the work of products and of attention -------------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::nn {

/// Multiply-adds of an operation that a library or a kernel of its own does; 0 of any other, whose work is what it moves.
uint64_t multiplyAddsOf(mlir::Operation *op);

} // namespace zero::nn

//===- duplicates.h - operations computed twice --------------------------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::train {
/// Whether an operation costs no more than a pass over memory (and nothing inside a kernel).
bool isCheap(mlir::Operation *op);
/// A product that backward computes again because whoever made it said so.
bool isMarked(mlir::Operation *op);

/// Let the first of several equal pure operations of the function's block serve them all; returns how many went.
///
/// What follows the definition of the returned loss is backward. There, cheap operations and marked products are not replaced by forward's.
/// Forward's result would have to be kept for all of the time between, or be written by a kernel that otherwise keeps it in registers; what
/// that saves is one pass that fuses with its users anyway, or a product that is marked as worth less than the memory.
int64_t removeDuplicates(mlir::func::FuncOp function);
} // namespace zero::train

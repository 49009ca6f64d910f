//===- backward.h - where the backward of a training step begins ---------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::train {

/// The loss that a function with a backward returns; null when it has none.
inline mlir::Value returnedLoss(mlir::func::FuncOp function) {
  if (function.getBody().empty()) return {};
  mlir::Block &block = function.getBody().front();
  bool hasBackward = block.getTerminator()->getNumOperands() == 1 && !block.getOps<nn::GradientOp>().empty();
  return hasBackward ? block.getTerminator()->getOperand(0) : mlir::Value();
}

/// The operation that makes it. What follows is backward.
inline mlir::Operation *lossOf(mlir::func::FuncOp function) {
  mlir::Value loss = returnedLoss(function);
  return loss ? loss.getDefiningOp() : nullptr;
}

} // namespace zero::train

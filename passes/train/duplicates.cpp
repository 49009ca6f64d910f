//===- duplicates.cpp - operations computed twice ------------------------------------------------------===//
#include "passes/train/duplicates.h"
#include "compiler/nn/same_operation.h"
#include "passes/train/backward.h"

using namespace mlir;

namespace zero::train {

/// What products read a part of, such as that which meets a tile of their weights.
static bool isOperandPart(Operation *op) {
  return isa<nn::SliceOp>(op) && llvm::all_of(op->getUsers(), [](Operation *user) { return isa<nn::MatMulOp>(user); });
}

/// Results of products that are made again, side by side.
static bool joinsMarked(Operation *op) {
  return op->hasTrait<nn::Movement>() && op->getNumOperands() > 1 &&
         llvm::all_of(op->getOperands(), [](Value v) { return isMarked(v.getDefiningOp()); });
}

bool isCheap(Operation *op) {
  return isOperandPart(op) || joinsMarked(op) || op->hasTrait<nn::Elementwise>() ||
         isa<nn::BroadcastOp, nn::TransposeOp, nn::PadOp, nn::IotaOp, nn::RandomOp>(op);
}

bool isMarked(Operation *op) {
  auto product = dyn_cast_or_null<nn::MatMulOp>(op);
  return product && product.getRecompute();
}

int64_t removeDuplicates(func::FuncOp function) {
  if (function.getBody().empty()) return 0;
  Block &block = function.getBody().front();
  Operation *loss = lossOf(function);
  nn::DistinctOperations known, cheap;
  int64_t removed = 0;
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    bool lossIsHere = &op == loss;
    if (isPure(&op) && op.getNumRegions() == 0) {
      auto [first, isNew] = (isCheap(&op) || isMarked(&op) ? cheap : known).insert(&op);
      if (!isNew) {
        op.replaceAllUsesWith(*first);
        op.erase();
        ++removed;
      }
    }
    if (lossIsHere) cheap.clear(); // backward begins
  }
  return removed;
}

} // namespace zero::train

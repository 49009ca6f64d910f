//===- epilogues.cpp - what products can do beside multiplying, as passes find it --------------------------===//
#include "passes/train/epilogues.h"

using namespace mlir;

namespace zero::train {
namespace {

// Elements that rows of what a library writes beside a product are multiples of.
constexpr int64_t kColumns = 8;

/// The vector that is repeated for every row of so many columns; or null.
Value rowOf(Value v, int64_t columns) {
  auto repeated = v.getDefiningOp<nn::BroadcastOp>();
  bool isRow = repeated && nn::typeOf(repeated.getInput()).getShape() == ArrayRef(columns) &&
               repeated.getDims().back() == nn::typeOf(v).getRank() - 1 && nn::typeOf(v).getShape().back() == columns;
  return isRow ? repeated.getInput() : Value();
}

} // namespace

nn::MatMulOp plainProductOf(Value v) {
  for (; v.hasOneUse() && v.getDefiningOp<nn::ReshapeOp>(); v = v.getDefiningOp()->getOperand(0)) {
  }
  auto product = v.getDefiningOp<nn::MatMulOp>();
  bool plain = product && v.hasOneUse() && !product.getOnto() && !product.getRecompute() && !product.getKeepLhs();
  return plain && product.getType().getRank() == 2 && product.getType().getDimSize(1) % kColumns == 0 ? product : nn::MatMulOp();
}

BiasedProduct biasedProductOf(Value v) {
  auto sum = nn::viewed(v).getDefiningOp<nn::AddOp>();
  for (unsigned i = 0; sum && i < 2; ++i)
    if (auto product = plainProductOf(sum->getOperand(i)))
      if (Value bias = rowOf(sum->getOperand(1 - i), product.getType().getDimSize(1))) return {product, bias, sum};
  return {};
}

void eraseWithUnused(Operation *op) {
  SmallVector<Operation *> unused{op};
  while (!unused.empty()) {
    Operation *next = unused.pop_back_val();
    SmallVector<Value> operands(next->getOperands());
    next->erase();
    for (Value operand : operands)
      if (Operation *from = operand.getDefiningOp(); from && isOpTriviallyDead(from) && !llvm::is_contained(unused, from))
        unused.push_back(from);
  }
}

} // namespace zero::train

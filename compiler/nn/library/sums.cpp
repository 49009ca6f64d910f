//===- sums.cpp - sums of columns that a product makes beside its result --------------------------===//
#include "compiler/nn/library/sums.h"

using namespace mlir;

namespace zero::nn {
namespace {

/// The value that `v` is a view of, all of it.
Value rootOf(Value v) {
  while (auto view = v.getDefiningOp<ReshapeOp>()) v = view.getInput();
  return v;
}

/// Operations that read a value or a view of it.
void addReaders(Value v, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : v.getUsers()) {
    if (auto view = dyn_cast<ReshapeOp>(user))
      addReaders(view.getResult(), readers);
    else
      readers.push_back(user);
  }
}

} // namespace

unsigned summedOperand(MatMulOp product, LaunchOp launch) {
  Value root = rootOf(launch.getInputs()[0]);
  if (product.getTransposeLhs() && rootOf(product.getLhs()) == root) return 0;
  return !product.getTransposeRhs() && rootOf(product.getRhs()) == root ? 1 : 2;
}

SmallVector<MatMulOp> productsSumming(LaunchOp launch) {
  SmallVector<Operation *> readers;
  addReaders(rootOf(launch.getInputs()[0]), readers);
  SmallVector<MatMulOp> products;
  for (Operation *reader : readers)
    if (auto product = dyn_cast<MatMulOp>(reader))
      if (product->getBlock() == launch->getBlock() && product.getType().getRank() == 2 && summedOperand(product, launch) < 2 &&
          !llvm::is_contained(products, product))
        products.push_back(product);
  llvm::sort(products, [](MatMulOp a, MatMulOp b) { return a->isBeforeInBlock(b); });
  return products;
}

MatMulOp productOf(LaunchOp launch) {
  MatMulOp last;
  if (launch->hasAttr(kInProduct))
    for (MatMulOp product : productsSumming(launch))
      if (product->isBeforeInBlock(launch)) last = product;
  return last;
}

LaunchOp sumsBeside(MatMulOp product) {
  SmallVector<Operation *> readers;
  if (product.getTransposeLhs()) addReaders(rootOf(product.getLhs()), readers);
  if (!product.getTransposeRhs()) addReaders(rootOf(product.getRhs()), readers);
  for (Operation *reader : readers)
    if (auto launch = dyn_cast<LaunchOp>(reader); launch && productOf(launch) == product) return launch;
  return {};
}

} // namespace zero::nn

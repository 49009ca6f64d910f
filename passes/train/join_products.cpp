//===- join_products.cpp - many products of few rows as one --------------------------------------------===//
#include "passes/train/join_products.h"

using namespace mlir;

namespace zero::train {

constexpr int64_t kMuch = 4; // times

bool hasFewRows(nn::MatMulOp product) {
  auto lhs = nn::typeOf(product.getLhs()), rhs = nn::typeOf(product.getRhs());
  if (!product.getTransposeLhs() || product.getTransposeRhs() || product.getOnto() || lhs.getRank() != 2) return false;
  return kMuch * (lhs.getNumElements() + rhs.getNumElements()) <= nn::typeOf(product.getResult()).getNumElements();
}

Value joinProducts(nn::Build b, ArrayRef<nn::MatMulOp> products) {
  SmallVector<Value> lhs, rhs;
  for (nn::MatMulOp product : products) lhs.push_back(product.getLhs()), rhs.push_back(product.getRhs());
  auto below = [&](ValueRange parts) -> Value { return b.b.create<nn::ConcatOp>(b.loc, parts, b.b.getI64IntegerAttr(0)); };
  Value left = below(lhs), right = below(rhs);
  return b.b.create<nn::MatMulOp>(b.loc, left, right, /*transpose_lhs=*/true);
}

} // namespace zero::train

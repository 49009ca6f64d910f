//===- matmul.cpp - gradient of the matrix product ---------------------------------------------------===//
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {

/// C = op(A) op(B). The gradient of a stored operand is again one product whose flags do the transposing:
///   dA = dC op(B)^T,  or op(B) dC^T when A is stored transposed;
///   dB = op(A)^T dC,  or dC^T op(A) when B is stored transposed.
LogicalResult MatMulOp::differentiate(OpBuilder &b, ValueRange d, SmallVectorImpl<Value> &out) {
  Value lhs = getLhs(), rhs = getRhs(), g = d[0];
  bool ta = getTransposeLhs(), tb = getTransposeRhs();
  auto product = [&](Value x, Value y, bool tx, bool ty) -> Value { return b.create<MatMulOp>(getLoc(), x, y, tx, ty); };
  out[0] = ta ? product(rhs, g, tb, true) : product(g, rhs, false, !tb);
  out[1] = tb ? product(g, lhs, true, ta) : product(lhs, g, !ta, false);
  return success();
}

} // namespace zero::nn

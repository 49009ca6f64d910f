//===- reduce.cpp - gradients of reductions ---------------------------------------------------------===//
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {

/// Sum: the gradient reaches every element. Maximum and minimum: elements equal to the result share it evenly
/// (torch.amax does the same).
LogicalResult ReduceOp::differentiate(OpBuilder &builder, ValueRange d, SmallVectorImpl<Value> &out) {
  Build b{builder, getLoc()};
  auto from = typeOf(getInput()).getShape();
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < int64_t(from.size()); ++i)
    if (!llvm::is_contained(getDims(), i)) kept.push_back(i);
  if (getKind() == ReductionKind::sum) {
    out[0] = b.broadcast(d[0], from, kept);
    return success();
  }
  Value winner = b.compare(Predicate::eq, getInput(), b.broadcast(getResult(), from, kept));
  Value ones = b.select(winner, b.like(getInput(), 1), b.like(getInput(), 0));
  Value share = b.div(d[0], b.reduce(ReductionKind::sum, ones, getDims()));
  out[0] = b.select(winner, b.broadcast(share, from, kept), b.like(getInput(), 0));
  return success();
}

/// What came before an element is what comes behind it on the way back.
LogicalResult CumSumOp::differentiate(OpBuilder &b, ValueRange d, SmallVectorImpl<Value> &out) {
  out[0] = b.create<CumSumOp>(getLoc(), d[0], getExclusive(), !getReverse());
  return success();
}

} // namespace zero::nn

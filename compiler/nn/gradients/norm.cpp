//===- norm.cpp - gradients of layer norm and RMS norm -----------------------------------------------===//
// Both read the input and one or two numbers per row, never their result: what is kept between forward and
// backward is the tensor that the residual stream keeps anyway.
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {
using Gradients = SmallVectorImpl<Value>;

static LogicalResult rejectStatistics(Operation *op, ValueRange d) {
  for (size_t i = 1; i < d.size(); ++i)
    if (d[i]) return op->emitOpError() << "has no gradient through its result #" << i << " (a statistic of the rows)";
  return success();
}

/// With n = (x - mean) rstd and g = d scale: dx = rstd (g - mean(g) - n mean(g n)), dscale = sum of d n, dbias = sum of d.
LogicalResult LayerNormOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  if (failed(rejectStatistics(*this, d))) return failure();
  Build b{builder, getLoc()};
  auto shape = typeOf(getInput()).getShape();
  int64_t columns = shape.back();
  Type element = elementOf(getInput());
  Value rstd = b.rows(getRstd(), columns);
  Value normal = b.mul(b.sub(getInput(), b.rows(getMean(), columns)), rstd);
  Value g = b.mul(d[0], b.columns(b.cast(getScale(), element), shape));
  Value meanG = b.rows(b.meanLast(g), columns), meanGn = b.rows(b.meanLast(b.mul(g, normal)), columns);
  out[0] = b.mul(rstd, b.sub(b.sub(g, meanG), b.mul(normal, meanGn)));
  out[1] = b.cast(b.sumRows(b.mul(d[0], normal)), elementOf(getScale()));
  if (getBias()) out[2] = b.cast(b.sumRows(d[0]), elementOf(getBias()));
  return success();
}

/// With n = x rstd and g = d scale: dx = rstd (g - n mean(g n)), dscale = sum of d n.
LogicalResult RmsNormOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  if (failed(rejectStatistics(*this, d))) return failure();
  Build b{builder, getLoc()};
  auto shape = typeOf(getInput()).getShape();
  int64_t columns = shape.back();
  Type element = elementOf(getInput());
  Value rstd = b.rows(getRstd(), columns);
  Value normal = b.mul(getInput(), rstd);
  Value g = b.mul(d[0], b.columns(b.cast(getScale(), element), shape));
  Value meanGn = b.rows(b.meanLast(b.mul(g, normal)), columns);
  out[0] = b.mul(rstd, b.sub(g, b.mul(normal, meanGn)));
  out[1] = b.cast(b.sumRows(b.mul(d[0], normal)), elementOf(getScale()));
  return success();
}

} // namespace zero::nn

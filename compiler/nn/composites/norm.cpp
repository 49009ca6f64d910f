//===- norm.cpp - layer norm and RMS norm ------------------------------------------------------===//
// Their gradients read the input and one or two numbers per row, never their result: what is kept between forward and
// backward is the tensor that the residual stream keeps anyway.
#include "compiler/nn/implement.h"
#include <cmath>

using namespace mlir;

namespace zero::nn {

static LogicalResult rejectStatistics(Operation *op, ValueRange d) {
  for (size_t i = 1; i < d.size(); ++i)
    if (d[i]) return op->emitOpError() << "has no gradient through its result #" << i << " (a statistic of the rows)";
  return success();
}

/// Of input and scale. With n the normalised row and g = d scale: dx = rstd (g - mean(g) - n mean(g n)), without mean(g) where no `mean`
/// has been taken off, and dscale = sum of d n.
template <typename Op> static LogicalResult differentiateNorm(Op op, Value mean, OpBuilder &builder, ValueRange d, Gradients &out) {
  if (failed(rejectStatistics(op, d))) return failure();
  Build b{builder, op.getLoc()};
  Value x = op.getInput();
  auto shape = typeOf(x).getShape();
  int64_t columns = shape.back();
  Value rstd = b.rows(op.getRstd(), columns);
  Value normal = b.mul(mean ? b.sub(x, b.rows(mean, columns)) : x, rstd);
  Value g = b.mul(d[0], b.columns(b.cast(op.getScale(), elementOf(x)), shape));
  Value meanG = mean ? b.rows(b.meanLast(g), columns) : Value();
  Value meanGn = b.rows(b.meanLast(b.mul(g, normal)), columns);
  out[0] = b.mul(rstd, b.sub(mean ? b.sub(g, meanG) : g, b.mul(normal, meanGn)));
  out[1] = b.cast(b.sumRows(b.mul(d[0], normal)), elementOf(op.getScale()));
  return success();
}

//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput());
  for (Value v : {a.getScale(), a.getBias()})
    if (v && (in.getRank() == 0 || typeOf(v).getShape() != in.getShape().take_back()))
      return reject(loc, "nn.layer_norm: scale and bias of ", in, " have one entry per column, not ", v.getType());
  auto row = with(in, in.getShape().drop_back());
  out.append({in, row, row});
  return success();
}

/// Two passes over the row: the variance is the mean square of centred values, never a difference of big numbers.
Composed LayerNormOp::decompose(Build &b) {
  Value x = getInput();
  int64_t n = typeOf(x).getShape().back();
  auto shape = typeOf(x).getShape();
  Value mean = b.meanLast(x), centred = b.sub(x, b.rows(mean, n));
  Value rstd = b.rsqrt(b.add(b.meanLast(b.mul(centred, centred)), getEps().convertToFloat()));
  Value y = b.mul(b.mul(centred, b.rows(rstd, n)), b.columns(b.cast(getScale(), elementOf(x)), shape));
  if (getBias()) y = b.add(y, b.columns(b.cast(getBias(), elementOf(x)), shape));
  return {y, mean, rstd};
}

LogicalResult LayerNormOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  if (failed(differentiateNorm(*this, getMean(), builder, d, out))) return failure();
  Build b{builder, getLoc()};
  if (getBias()) out[2] = b.cast(b.sumRows(d[0]), elementOf(getBias()));
  return success();
}

LogicalResult LayerNormOp::evaluate(Operands in, Results out) {
  int64_t n = columnsOf(*in[0]);
  double eps = getEps().convertToDouble();
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>();
    Tensor scale = in[1]->cast(in[0]->elementType()), bias = getBias() ? in[2]->cast(in[0]->elementType()) : Tensor(scale.type);
    auto g = scale.template data<T>(), b = bias.template data<T>();
    auto y = out[0].data<T>(), means = out[1].data<T>(), rstds = out[2].data<T>();
    for (size_t row = 0; row < means.size(); ++row) {
      const T *r = x.data() + row * n;
      double sum = 0, squares = 0;
      for (int64_t j = 0; j < n; ++j) sum += r[j];
      double mean = sum / n;
      for (int64_t j = 0; j < n; ++j) squares += (r[j] - mean) * (r[j] - mean);
      double rstd = 1 / std::sqrt(squares / n + eps);
      for (int64_t j = 0; j < n; ++j) y[row * n + j] = T((r[j] - mean) * rstd * g[j] + b[j]);
      means[row] = T(mean);
      rstds[row] = T(rstd);
    }
    return success();
  });
}

//===----------------------------------------------------------------------===//
// RMS norm
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput());
  if (in.getRank() == 0 || typeOf(a.getScale()).getShape() != in.getShape().take_back())
    return reject(loc, "nn.rms_norm: scale of ", in, " has one entry per column, not ", a.getScale().getType());
  out.append({in, with(in, in.getShape().drop_back())});
  return success();
}

Composed RmsNormOp::decompose(Build &b) {
  Value x = getInput();
  int64_t n = typeOf(x).getShape().back();
  Value rstd = b.rsqrt(b.add(b.meanLast(b.mul(x, x)), getEps().convertToFloat()));
  Value scale = b.columns(b.cast(getScale(), elementOf(x)), typeOf(x).getShape());
  return {b.mul(b.mul(x, b.rows(rstd, n)), scale), rstd};
}

LogicalResult RmsNormOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  return differentiateNorm(*this, {}, builder, d, out);
}

LogicalResult RmsNormOp::evaluate(Operands in, Results out) {
  int64_t n = columnsOf(*in[0]);
  double eps = getEps().convertToDouble();
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>();
    Tensor scale = in[1]->cast(in[0]->elementType());
    auto g = scale.template data<T>();
    auto y = out[0].data<T>(), rstds = out[1].data<T>();
    for (size_t row = 0; row < rstds.size(); ++row) {
      const T *r = x.data() + row * n;
      double squares = 0;
      for (int64_t j = 0; j < n; ++j) squares += double(r[j]) * r[j];
      double rstd = 1 / std::sqrt(squares / n + eps);
      for (int64_t j = 0; j < n; ++j) y[row * n + j] = T(r[j] * rstd * g[j]);
      rstds[row] = T(rstd);
    }
    return success();
  });
}

} // namespace zero::nn

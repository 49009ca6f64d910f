//===- activation.cpp - gradients of GELU, SiLU, softmax and dropout ---------------------------------===//
// GELU and SiLU are recomputed from their input, which the product before them needs anyway; softmax needs its
// result alone; dropout draws the same numbers again instead of keeping a mask.
#include "compiler/nn/build.h"
#include <numbers>

using namespace mlir;

namespace zero::nn {
using Gradients = SmallVectorImpl<Value>;

LogicalResult GeluOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value x = getInput(), one = b.like(x, 1), slope;
  if (getKind() == GeluKind::erf) { // Phi(x) + x * phi(x)
    Value phi = b.mul(b.exp(b.mul(b.mul(x, x), -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    Value cumulative = b.mul(b.add(b.erf(b.mul(x, 1 / std::numbers::sqrt2)), one), 0.5);
    slope = b.add(cumulative, b.mul(x, phi));
  } else { // x s with s = sigmoid(2 c (x + a x^3)): s + x s (1 - s) 2 c (1 + 3 a x^2)
    const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, a = 0.044715;
    Value square = b.mul(x, x);
    Value s = b.sigmoid(b.mul(x, b.add(b.mul(square, 2 * c * a), b.like(x, 2 * c))));
    Value inner = b.add(b.mul(square, 6 * c * a), b.like(x, 2 * c));
    slope = b.mul(s, b.add(b.mul(b.mul(x, b.sub(one, s)), inner), one));
  }
  out[0] = b.mul(d[0], slope);
  return success();
}

/// s (1 + x (1 - s)) with s = sigmoid(x).
LogicalResult SiluOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value x = getInput(), one = b.like(x, 1), s = b.sigmoid(x);
  out[0] = b.mul(d[0], b.mul(s, b.add(b.mul(x, b.sub(one, s)), one)));
  return success();
}

/// y (d - sum(d y)).
LogicalResult SoftmaxOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value y = getResult(), along = b.sumLast(b.mul(d[0], y));
  out[0] = b.mul(y, b.sub(d[0], b.rows(along, typeOf(y).getShape().back())));
  return success();
}

LogicalResult DropoutOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = b.create<DropoutOp>(getLoc(), d[0].getType(), d[0], getSeed(), getRateAttr(), getIdAttr(), getSamplesAttr());
  return success();
}

} // namespace zero::nn

//===- activation.cpp - GELU and SiLU ----------------------------------------------------------===//
// Their gradients are computed from their input, which the product before them needs anyway.
#include "compiler/nn/eval/gelu.h"
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

/// Computed in double, rounded once.
template <typename F> static LogicalResult eachFloat(Operands in, Results out, F f) {
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    llvm::transform(in[0]->data<T>(), out[0].data<T>().begin(), [&](T x) { return T(f(double(x))); });
    return success();
  });
}

//===----------------------------------------------------------------------===//
// GELU
//===----------------------------------------------------------------------===//

Composed GeluOp::decompose(Build &b) {
  Value x = getInput();
  if (getKind() == GeluKind::erf) return {b.mul(b.mul(x, 0.5), b.add(b.erf(b.mul(x, 1 / std::numbers::sqrt2)), 1))};
  // (1 + tanh u) / 2 is sigmoid(2 u), which keeps its digits where tanh comes near -1 and is shorter.
  const double c = kSqrtTwoOverPi;
  return {b.mul(x, b.sigmoid(b.mul(x, b.add(b.mul(b.mul(x, x), 2 * c * kGeluCubic), 2 * c))))};
}

LogicalResult GeluOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = b.create<GeluGradOp>(getLoc(), d[0].getType(), getKind(), getInput(), d[0]);
  return success();
}

LogicalResult GeluOp::evaluate(Operands in, Results out) { return eachFloat(in, out, getKind() == GeluKind::tanh ? tanhGelu : erfGelu); }

Composed GeluGradOp::decompose(Build &b) {
  Value x = getInput(), one = b.like(x, 1), slope;
  if (getKind() == GeluKind::erf) { // Phi(x) + x * phi(x)
    Value phi = b.mul(b.exp(b.mul(b.mul(x, x), -0.5)), std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    Value cumulative = b.mul(b.add(b.erf(b.mul(x, 1 / std::numbers::sqrt2)), one), 0.5);
    slope = b.add(cumulative, b.mul(x, phi));
  } else { // x s with s = sigmoid(2 c (x + a x^3)): s + x s (1 - s) 2 c (1 + 3 a x^2)
    const double c = kSqrtTwoOverPi, a = kGeluCubic;
    Value square = b.mul(x, x);
    Value s = b.sigmoid(b.mul(x, b.add(b.mul(square, 2 * c * a), b.like(x, 2 * c))));
    Value inner = b.add(b.mul(square, 6 * c * a), b.like(x, 2 * c));
    slope = b.mul(s, b.add(b.mul(b.mul(x, b.sub(one, s)), inner), one));
  }
  return {b.mul(getOfResult(), slope)};
}

LogicalResult GeluGradOp::evaluate(Operands in, Results out) {
  auto slope = getKind() == GeluKind::tanh ? tanhGeluSlope : erfGeluSlope;
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    llvm::transform(llvm::zip(in[0]->data<T>(), in[1]->data<T>()), out[0].data<T>().begin(), [&](auto both) {
      auto [x, d] = both;
      return T(double(d) * slope(double(x)));
    });
    return success();
  });
}

//===----------------------------------------------------------------------===//
// SiLU
//===----------------------------------------------------------------------===//

Composed SiluOp::decompose(Build &b) { return {b.mul(getInput(), b.sigmoid(getInput()))}; }

/// s (1 + x (1 - s)) with s = sigmoid(x).
LogicalResult SiluOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value x = getInput(), one = b.like(x, 1), s = b.sigmoid(x);
  out[0] = b.mul(d[0], b.mul(s, b.add(b.mul(x, b.sub(one, s)), one)));
  return success();
}

LogicalResult SiluOp::evaluate(Operands in, Results out) {
  return eachFloat(in, out, [](double x) { return x * sigmoid(x); });
}

} // namespace zero::nn

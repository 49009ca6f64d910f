//===- activation.cpp - GELU, SiLU and dropout -------------------------------------------------===//
// The gradients of GELU and SiLU are computed from their input, which the product before them needs anyway; dropout draws the same numbers
// again instead of keeping a mask.
#include "compiler/nn/composites/gelu.h"
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

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::verify() {
  float rate = getRate().convertToFloat();
  if (!(rate >= 0 && rate <= 1)) return emitOpError() << "drops at a rate of " << rate << ", which is not in [0, 1]";
  return verifyStream(*this);
}

bool DropoutOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0);
  auto lead = leadingOf(typeOf(getInput()).getShape(), rows);
  return lead && rows % std::max<int64_t>(getSamples(), 1) == 0;
}

/// The part draws the numbers that these rows have in the whole: as many samples as rows, and the first of them by its number.
void DropoutOp::takeRows(Build &b, const Rows &rows, OperationState &part) {
  auto type = typeOf(getSeed());
  auto numbers = [&](int64_t first, int64_t second) -> Value {
    return b.b.create<ConstantOp>(b.loc, DenseElementsAttr::get(type, ArrayRef<int64_t>{first, second}));
  };
  int64_t perSample = getSamples() ? rows.all / int64_t(getSamples()) : 0; // the same for every sample: counted from the tensor's beginning
  part.operands[1] = b.add(b.mul(getSeed(), numbers(1, perSample)), numbers(0, rows.begin));
  part.attributes.set(getSamplesAttrName(), b.b.getI64IntegerAttr(rows.count));
}

Composed DropoutOp::decompose(Build &b) {
  Value x = getInput();
  double rate = getRate().convertToFloat();
  if (rate == 0) return {x};
  auto type = withElement(x, b.b.getF32Type());
  Value number = b.b.create<RandomOp>(b.loc, type, getSeed(), getIdAttr(), getSamplesAttr());
  Value keep = b.compare(Predicate::ge, number, b.splat(type, rate));
  return {b.select(keep, rate < 1 ? b.mul(x, 1 / (1 - rate)) : x, b.like(x, 0))};
}

LogicalResult DropoutOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = b.create<DropoutOp>(getLoc(), d[0].getType(), d[0], getSeed(), getRateAttr(), getIdAttr(), getSamplesAttr());
  return success();
}

LogicalResult DropoutOp::evaluate(Operands in, Results out) {
  float rate = getRate().convertToFloat(), factor = float(1.0 / (1.0 - double(rate)));
  return withFloat(out[0].elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>();
    auto y = out[0].data<T>();
    return draw(*this, *in[1], out[0].size(), [&](size_t i, float number) { y[i] = number >= rate ? x[i] * T(factor) : T(0); });
  });
}

} // namespace zero::nn

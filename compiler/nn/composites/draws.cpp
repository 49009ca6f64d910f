//===- draws.cpp - dropout and noise ----------------------------------------------------------------===//
// What draws random numbers for the samples of its input. A part of the rows draws the numbers that these rows have in the whole, and the
// gradient of dropout draws the same numbers again instead of keeping a mask.
#include "compiler/nn/implement.h"
#include <cmath>
#include <numbers>

using namespace mlir;

namespace zero::nn {

namespace {

template <typename Op> bool drawsRows(Op op, int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0);
  auto lead = leadingOf(typeOf(op.getInput()).getShape(), rows);
  return lead && rows % std::max<int64_t>(op.getSamples(), 1) == 0;
}

/// As many samples as rows, and the first of them by its number.
template <typename Op> void takeDraws(Op op, Build &b, const Rows &rows, OperationState &part) {
  auto type = typeOf(op.getSeed());
  auto numbers = [&](int64_t first, int64_t second) -> Value {
    return b.b.create<ConstantOp>(b.loc, DenseElementsAttr::get(type, ArrayRef<int64_t>{first, second}));
  };
  int64_t perSample =
      op.getSamples() ? rows.all / int64_t(op.getSamples()) : 0; // the same for every sample: counted from the tensor's beginning
  part.operands[1] = b.add(b.mul(op.getSeed(), numbers(1, perSample)), numbers(0, rows.begin));
  part.attributes.set(op.getSamplesAttrName(), b.b.getI64IntegerAttr(rows.count));
}

} // namespace

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::verify() {
  float rate = getRate().convertToFloat();
  if (!(rate >= 0 && rate <= 1)) return emitOpError() << "drops at a rate of " << rate << ", which is not in [0, 1]";
  return verifyStream(*this);
}

bool DropoutOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) { return drawsRows(*this, rows, cut); }
void DropoutOp::takeRows(Build &b, const Rows &rows, OperationState &part) { takeDraws(*this, b, rows, part); }

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

//===----------------------------------------------------------------------===//
// Noise
//===----------------------------------------------------------------------===//

LogicalResult NoiseOp::verify() { return verifyStream(*this); }
bool NoiseOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) { return drawsRows(*this, rows, cut); }
void NoiseOp::takeRows(Build &b, const Rows &rows, OperationState &part) { takeDraws(*this, b, rows, part); }

Composed NoiseOp::decompose(Build &b) {
  auto type = withElement(getInput(), b.b.getF32Type());
  auto stream = [&](uint64_t which) -> Value {
    return b.b.create<RandomOp>(b.loc, type, getSeed(), b.b.getI64IntegerAttr(int64_t(getId() + which)), getSamplesAttr());
  };
  Value drawn = stream(0);
  if (getNormal()) { // 1 - u is never zero
    Value radius = b.b.create<SqrtOp>(b.loc, b.mul(b.log(b.sub(b.splat(type, 1), drawn)), -2));
    drawn = b.mul(radius, b.b.create<CosOp>(b.loc, b.mul(stream(1), 2 * std::numbers::pi)));
  }
  return {b.cast(drawn, typeOf(getResult()).getElementType())};
}

LogicalResult NoiseOp::evaluate(Operands in, Results out) {
  if (in[1]->size() != 2) return emitOpError() << "needs a seed of two numbers";
  RandomKey second = randomKey(uint64_t(in[1]->data<int64_t>()[0]), getId() + 1);
  uint64_t first = getSamples() ? uint64_t(in[1]->data<int64_t>()[1]) * uint64_t(out[0].size() / int64_t(getSamples())) : 0;
  return draw(*this, *in[1], out[0].size(), [&](size_t i, float number) {
    double angle = 2 * std::numbers::pi * double(uniform(second, first + i));
    out[0].set(int64_t(i), getNormal() ? std::sqrt(-2 * std::log(1 - double(number))) * std::cos(angle) : double(number));
  });
}

} // namespace zero::nn

//===- scalar.cpp - what a formula takes -------------------------------------------------------------===//
#include "compiler/nn/scalar.h"
#include "compiler/nn/Nn.h"

using namespace mlir;

namespace zero::nn {

bool isTranscendental(Fn fn) {
  switch (fn) {
  case Fn::Exp:
  case Fn::Log:
  case Fn::Tanh:
  case Fn::Erf:
  case Fn::Sin:
  case Fn::Cos:
  case Fn::Pow:
  case Fn::Sigmoid:
  case Fn::Random:
    return true;
  default:
    return false;
  }
}

namespace {

class Counter : public ScalarBuilder {
public:
  FormulaSize size;
  Number apply(Fn fn, ArrayRef<Number>) override {
    ++size.functions;
    size.transcendentals += isTranscendental(fn);
    return {0};
  }
  Number constant(Number, double) override { return {0}; }
  Number convert(Number, Type) override { return apply(Fn::Cast, {}); }
};

} // namespace

FormulaSize sizeOf(PointwiseOpInterface op) {
  Counter counter;
  SmallVector<Number, 3> operands(op->getNumOperands(), Number{0});
  op.compute(counter, operands);
  return counter.size;
}

} // namespace zero::nn

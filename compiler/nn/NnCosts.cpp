//===- NnCosts.cpp - floating-point operations of what is not one per element --------------------===//
// Elementwise operations count one per result element (the interface's default). Transcendentals count as
// what their polynomials take, rounded: exp, log, tanh, erf about 10.
#include "compiler/nn/Nn.h"

using namespace mlir;

namespace zero::nn {
namespace {
uint64_t elements(Value v) { return cast<ShapedType>(v.getType()).getNumElements(); }
/// Scores of one attention: batch * heads * q_len * kv_len.
uint64_t scores(Value q, Value k) {
  return elements(q) / cast<ShapedType>(q.getType()).getDimSize(3) * cast<ShapedType>(k.getType()).getDimSize(2);
}
} // namespace

uint64_t ReduceOp::getFlops() { return elements(getInput()); }
uint64_t GeluOp::getFlops() { return 14 * elements(getInput()); }
uint64_t SoftmaxOp::getFlops() { return 13 * elements(getInput()); }
uint64_t LayerNormOp::getFlops() { return 8 * elements(getInput()); }
uint64_t RmsNormOp::getFlops() { return 5 * elements(getInput()); }
uint64_t CrossEntropyOp::getFlops() { return 13 * elements(getLogits()); }
uint64_t MatMulOp::getFlops() {
  auto l = cast<ShapedType>(getLhs().getType());
  return 2 * elements(getResult()) * l.getDimSize(l.getRank() - (getTransposeLhs() ? 2 : 1));
}
uint64_t AttentionOp::getFlops() { return scores(getQ(), getK()) * (4 * cast<ShapedType>(getQ().getType()).getDimSize(3) + 13); }
uint64_t AttentionGradOp::getFlops() { return scores(getQ(), getK()) * (10 * cast<ShapedType>(getQ().getType()).getDimSize(3) + 16); }

} // namespace zero::nn

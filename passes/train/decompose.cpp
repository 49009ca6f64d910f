//===- decompose.cpp - nn-decompose --------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/train/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numbers>

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "passes/train/Passes.h.inc"

namespace {
using nn::Build;
using nn::typeOf;
using Results = SmallVector<Value>;

int64_t columnsOf(Value v) { return typeOf(v).getShape().back(); }

/// A row without a finite maximum (all -inf) gives NaN, as in PyTorch.
Results softmax(Build &b, nn::SoftmaxOp op) {
  Value x = op.getInput();
  int64_t n = columnsOf(x);
  Value e = b.exp(b.sub(x, b.rows(b.maxLast(x), n)));
  Value sum = b.sumLast(e);
  return {b.mul(e, b.rows(b.div(b.like(sum, 1), sum), n))};
}

/// Two passes over the row: the variance is the mean square of centred values, never a difference of big numbers.
Results layerNorm(Build &b, nn::LayerNormOp op) {
  Value x = op.getInput();
  int64_t n = columnsOf(x);
  auto shape = typeOf(x).getShape();
  Value mean = b.meanLast(x), centred = b.sub(x, b.rows(mean, n));
  Value rstd = b.rsqrt(b.add(b.meanLast(b.mul(centred, centred)), op.getEps().convertToFloat()));
  Value y = b.mul(b.mul(centred, b.rows(rstd, n)), b.columns(b.cast(op.getScale(), nn::elementOf(x)), shape));
  if (op.getBias()) y = b.add(y, b.columns(b.cast(op.getBias(), nn::elementOf(x)), shape));
  return {y, mean, rstd};
}

Results rmsNorm(Build &b, nn::RmsNormOp op) {
  Value x = op.getInput();
  int64_t n = columnsOf(x);
  Value rstd = b.rsqrt(b.add(b.meanLast(b.mul(x, x)), op.getEps().convertToFloat()));
  Value scale = b.columns(b.cast(op.getScale(), nn::elementOf(x)), typeOf(x).getShape());
  return {b.mul(b.mul(x, b.rows(rstd, n)), scale), rstd};
}

Results gelu(Build &b, nn::GeluOp op) {
  Value x = op.getInput();
  if (op.getKind() == nn::GeluKind::erf) return {b.mul(b.mul(x, 0.5), b.add(b.erf(b.mul(x, 1 / std::numbers::sqrt2)), 1))};
  // (1 + tanh u) / 2 is sigmoid(2 u), which keeps its digits where tanh comes near -1 and is shorter.
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return {b.mul(x, b.sigmoid(b.mul(x, b.add(b.mul(b.mul(x, x), 2 * c * 0.044715), 2 * c))))};
}

/// The label's logit is found by comparing the label with the index of every class: an ignored label, whatever its value, selects
/// nothing that counts and is never an index. A smoothed label takes all of the row's logits, centred as in the sum of exponentials: one
/// loop makes both sums, and large logits cancel before they are added.
Results crossEntropy(Build &b, nn::CrossEntropyOp op) {
  Value x = op.getLogits(), labels = op.getLabels();
  int64_t rows = typeOf(x).getDimSize(0), classes = typeOf(x).getDimSize(1);
  Value max = b.maxLast(x), centred = b.sub(x, b.rows(max, classes));
  Value log = b.log(b.sumLast(b.exp(centred))), lse = b.add(log, max);
  Type index = b.b.getI32Type();
  Value here = b.compare(nn::Predicate::eq, b.iota(nn::withElement(x, index), 1), b.rows(b.cast(labels, index), classes)), row;
  if (op.smoothing() > 0)
    row = b.sub(log, b.sumLast(b.mul(b.select(here, b.like(x, op.atLabel()), b.like(x, op.elsewhere())), centred)));
  else
    row = b.sub(lse, b.sumLast(b.select(here, x, b.like(x, 0))));
  Value scale = b.everywhere(b.cast(op.getScale(), nn::elementOf(x)), {rows});
  Value counts = b.compare(nn::Predicate::ne, labels, b.like(labels, double(op.getIgnoreIndexAttr().getInt())));
  return {b.sumAll(b.select(counts, b.mul(row, scale), b.like(lse, 0))), lse};
}

Results dropout(Build &b, nn::DropoutOp op) {
  Value x = op.getInput();
  double rate = op.getRate().convertToFloat();
  if (rate == 0) return {x};
  auto type = nn::withElement(x, b.b.getF32Type());
  Value number = b.b.create<nn::RandomOp>(b.loc, type, op.getSeed(), op.getIdAttr(), op.getSamplesAttr());
  Value keep = b.compare(nn::Predicate::ge, number, b.splat(type, rate));
  return {b.select(keep, rate < 1 ? b.mul(x, 1 / (1 - rate)) : x, b.like(x, 0))};
}

Results decompose(Build &b, Operation *op) {
  return TypeSwitch<Operation *, Results>(op)
      .Case([&](nn::SoftmaxOp o) { return softmax(b, o); })
      .Case([&](nn::LayerNormOp o) { return layerNorm(b, o); })
      .Case([&](nn::RmsNormOp o) { return rmsNorm(b, o); })
      .Case([&](nn::GeluOp o) { return gelu(b, o); })
      .Case([&](nn::SiluOp o) { return Results{b.mul(o.getInput(), b.sigmoid(o.getInput()))}; })
      .Case([&](nn::CrossEntropyOp o) { return crossEntropy(b, o); })
      .Case([&](nn::DropoutOp o) { return dropout(b, o); })
      .Default([](Operation *) { return Results(); });
}

struct Decompose : impl::DecomposePassBase<Decompose> {
  void runOnOperation() override {
    SmallVector<Operation *> all;
    getOperation().walk([&](Operation *op) {
      if (isa_and_nonnull<nn::NnDialect>(op->getDialect())) all.push_back(op);
    });
    for (Operation *op : all) {
      OpBuilder builder(op);
      Build b{builder, op->getLoc()};
      Results results = decompose(b, op);
      if (results.empty()) continue;
      op->replaceAllUsesWith(results);
      op->erase();
      ++rewritten;
    }
  }
};

} // namespace
} // namespace zero::train

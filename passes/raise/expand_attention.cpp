//===- expand_attention.cpp - nn-expand-attention ------------------------------------------------------------===//
#include "compiler/codegen/attention.h"
#include "passes/raise/Passes.h"
#include "passes/raise/match.h"
#include "passes/raise/movement.h"
#include "passes/raise/patterns.h"
#include <cmath>

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_EXPANDATTENTIONPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// Whether a key is up to `last` after its query.
Value seenUpTo(Build &b, int64_t last, ArrayRef<int64_t> shape) {
  auto positions = RankedTensorType::get(shape.take_back(2), b.b.getI64Type());
  Value seen = b.compare(Predicate::ge, b.add(b.iota(positions, 0), double(last)), b.iota(positions, 1));
  return b.broadcast(seen, shape, {2, 3});
}

void expand(AttentionOp op) {
  OpBuilder builder(op);
  Build b{builder, op.getLoc()};
  auto q = typeOf(op.getQ()).getShape(), k = typeOf(op.getK()).getShape();
  int64_t batch = q[0], heads = q[1], queries = q[2], dim = q[3], keyHeads = k[1], keys = k[2];
  SmallVector<int64_t> shape{batch, heads, queries, keys};
  int64_t groups = batch * keyHeads, rows = heads / keyHeads * queries;
  Value rhs = b.reshape(op.getK(), {groups, keys, dim});
  Value product = builder.create<MatMulOp>(b.loc, b.reshape(op.getQ(), {groups, rows, dim}), rhs, false, true);
  Value scores = b.mul(b.reshape(product, shape), op.getScale().convertToDouble());
  if (auto cap = op.getSoftcap()) scores = b.mul(b.tanh(b.mul(scores, 1 / cap->convertToDouble())), cap->convertToDouble());
  if (Value bias = op.getBias()) scores = b.add(scores, b.broadcast(b.cast(bias, elementOf(scores)), shape, {1, 2, 3}));
  auto bounded = [&](Value v, double number) {
    Value other = b.like(v, number);
    if (op.getCausal()) v = b.select(seenUpTo(b, keys - queries, shape), v, other);
    if (auto band = op.getBand()) {
      v = b.select(seenUpTo(b, (*band)[1], shape), v, other);
      v = b.select(seenUpTo(b, (*band)[0] - 1, shape), other, v);
    }
    return v;
  };
  Value mask;
  if (op.getMask()) mask = b.broadcast(b.cast(op.getMask(), elementOf(scores)), shape, {0, 1, 2, 3});
  if (auto beyond = op.getBeyond()) {
    scores = b.add(scores, bounded(mask, beyond->convertToDouble())); // added: a row that sees nothing else has a gradient of all scores
  } else {
    if (mask) scores = b.add(scores, mask);
    scores = bounded(scores, -INFINITY);
  }
  Value sighted;
  if (op.getMask() || op.getBand() || (op.getCausal() && queries > keys)) {
    Value sees = b.compare(Predicate::gt, b.maxLast(scores), b.like(b.maxLast(scores), -INFINITY));
    sighted = b.rows(sees, keys);
    scores = b.select(sighted, scores, b.like(scores, 0));
  }
  SmallVector<int64_t> column{batch, heads, queries, 1}, first(4, 0), all(4, 1);
  if (Value sink = op.getSink()) {
    Value columns[] = {scores, b.broadcast(sink, column, {1})};
    scores = builder.create<ConcatOp>(b.loc, columns, 3);
  }
  Value weights = builder.create<SoftmaxOp>(b.loc, scores);
  if (op.getSink()) weights = b.slice(weights, first, shape, all);
  if (sighted) weights = b.select(sighted, weights, b.like(weights, 0));
  Value out =
      builder.create<MatMulOp>(b.loc, b.reshape(weights, {groups, rows, keys}), b.reshape(op.getV(), {groups, keys, dim}), false, false);
  op.getResult().replaceAllUsesWith(b.reshape(out, q));
  op.erase();
}

/// The value that holds q, k and v as the packed form has them, whichever way they are taken out of it; null where there is none.
Value packedIn(AttentionOp op) {
  auto q = shapeOf(op.getQ()), k = shapeOf(op.getK());
  if (q[2] != k[2]) return {};
  const int64_t shape[] = {q[0], q[2], q[1] + 2 * k[1], q[3]};
  int64_t before = 0;
  Value packed;
  for (Value v : {op.getQ(), op.getK(), op.getV()}) {
    Space space;
    Movement movement(space);
    Indices at; // of any element
    for (int64_t size : shapeOf(v)) at.push_back(size > 1 ? Index::atom(space.dim(size, 0, 0)) : Index(0));
    Index there = space.linearize({at[0], at[2], at[1] + Index(before), at[3]}, shape);
    before += shapeOf(v)[1];
    while (typeOf(v).getNumElements() != ShapedType::getNumElements(shape) || !(space.linearize(at, shapeOf(v)) == there))
      if (!movement.follow(v, at)) return {};
    v = viewed(v);
    if (packed && packed != v) return {};
    packed = v;
  }
  OpBuilder builder(op);
  return Build{builder, op.getLoc()}.reshape(packed, shape);
}

/// Makes an attention whose operands hold the heads of a position side by side, as projections write and read them: all in one where one
/// projection makes them. The transpositions made here cancel the model's own, or become the index of a neighbouring kernel.
void turn(AttentionOp op) {
  OpBuilder builder(op);
  Build b{builder, op.getLoc()};
  auto turned = [&](Value v) { return builder.create<TransposeOp>(b.loc, v, ArrayRef<int64_t>{0, 2, 1, 3}).getResult(); };
  auto replace = [&](Value q, Value k, Value v, IntegerAttr packedKeyHeads) {
    auto made =
        builder.create<AttentionOp>(b.loc, q, k, v, op.getMask(), op.getBias(), op.getSink(), op.getScaleAttr(), op.getCausalAttr(),
                                    builder.getBoolAttr(true), packedKeyHeads, op.getBandAttr(), op.getSoftcapAttr(), op.getBeyondAttr());
    op.getResult().replaceAllUsesWith(turned(made.getResult()));
  };
  if (Value x = packedIn(op))
    replace(x, x, x, builder.getI64IntegerAttr(shapeOf(op.getK())[1]));
  else
    replace(turned(op.getQ()), turned(op.getK()), turned(op.getV()), IntegerAttr());
  op.erase();
}

struct ExpandAttention : impl::ExpandAttentionPassBase<ExpandAttention> {
  using ExpandAttentionPassBase::ExpandAttentionPassBase;

  void runOnOperation() override {
    SmallVector<AttentionOp> attentions, left;
    getOperation().walk([&](AttentionOp op) { (kernels && codegen::hasKernels(op) ? left : attentions).push_back(op); });
    for (AttentionOp op : attentions) {
      if (!op.getLse().use_empty()) {
        op.emitOpError("is read by its gradient already and cannot be expanded");
        return signalPassFailure();
      }
      expand(op);
    }
    for (AttentionOp op : left)
      if (op.getLse().use_empty() && !op.getBshd()) turn(op);
    eraseDead(getOperation());
  }
};

} // namespace
} // namespace zero::raise

//===- expand_attention.cpp - nn-expand-attention ------------------------------------------------------------===//
#include "compiler/codegen/attention.h"
#include "compiler/nn/build.h"
#include "passes/raise/Passes.h"
#include <cmath>

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_EXPANDATTENTIONPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// Position i of the queries sees positions up to i + keys - queries.
Value triangle(Build &b, ArrayRef<int64_t> shape) {
  int64_t queries = shape[2], keys = shape[3];
  auto positions = RankedTensorType::get({queries, keys}, b.b.getI64Type());
  Value seen = b.compare(Predicate::ge, b.add(b.iota(positions, 0), double(keys - queries)), b.iota(positions, 1));
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
  Value nothing = b.like(scores, -INFINITY);
  if (Value mask = op.getMask()) scores = b.add(scores, b.broadcast(b.cast(mask, elementOf(scores)), shape, {0, 1, 2, 3}));
  if (op.getCausal()) scores = b.select(triangle(b, shape), scores, nothing);
  Value sighted;
  if (op.getMask() || (op.getCausal() && queries > keys)) {
    Value sees = b.compare(Predicate::gt, b.maxLast(scores), b.like(b.maxLast(scores), -INFINITY));
    sighted = b.rows(sees, keys);
    scores = b.select(sighted, scores, b.like(scores, 0));
  }
  Value weights = builder.create<SoftmaxOp>(b.loc, scores);
  if (sighted) weights = b.select(sighted, weights, b.like(weights, 0));
  Value out =
      builder.create<MatMulOp>(b.loc, b.reshape(weights, {groups, rows, keys}), b.reshape(op.getV(), {groups, keys, dim}), false, false);
  op.getResult().replaceAllUsesWith(b.reshape(out, q));
  op.erase();
}

/// Makes an attention whose operands hold the heads of a position side by side, as projections write and read them. The transpositions
/// made here cancel the model's own, or become the index of a neighbouring kernel.
void turn(AttentionOp op) {
  OpBuilder builder(op);
  Build b{builder, op.getLoc()};
  auto turned = [&](Value v) { return builder.create<TransposeOp>(b.loc, v, ArrayRef<int64_t>{0, 2, 1, 3}).getResult(); };
  auto made = builder.create<AttentionOp>(b.loc, turned(op.getQ()), turned(op.getK()), turned(op.getV()), op.getMask(), op.getScaleAttr(),
                                          op.getCausalAttr(), builder.getBoolAttr(true), IntegerAttr());
  op.getResult().replaceAllUsesWith(turned(made.getResult()));
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
  }
};

} // namespace
} // namespace zero::raise

//===- tile_loss.cpp - a cross-entropy whose logits never exist whole ------------------------------------===//
#include "passes/train/tile.h"
#include <limits>

using namespace mlir;

namespace zero::train {

/// Whether a constant is added to logits.
static bool isMasked(const Logits &logits) {
  auto isConstant = [](Value v) {
    while (isa_and_nonnull<nn::ReshapeOp, nn::BroadcastOp, nn::CastOp>(v.getDefiningOp())) v = v.getDefiningOp()->getOperand(0);
    return isa_and_nonnull<nn::ConstantOp>(v.getDefiningOp());
  };
  return llvm::any_of(logits.path,
                      [&](Operation *op) { return isa<nn::AddOp, nn::SubOp>(op) && llvm::any_of(op->getOperands(), isConstant); });
}

/// For a label c in tile k: -log softmax(x)[c] = (lse_k - x[c]) + (lse - lse_k), where lse_k is the log of the sum of exponentials of the
/// tile and lse that of all of them, which is the log of the sum of exponentials of the lse_k. The first is the cross-entropy of the tile's
/// logits, the second that of the lse_k with k as label. Both have the gradient they have everywhere.
///
/// Labels smoothed by s weigh that 1 - s, and s the mean over all classes of lse - x: of each tile it takes one sum of a row more.
void tileLoss(nn::MatMulOp product, const Logits &logits, const TiledParameter &weights, bool again) {
  nn::CrossEntropyOp whole = logits.loss;
  OpBuilder builder(whole);
  nn::Build b{builder, whole.getLoc()};
  Value labels = whole.getLabels(), none = b.like(labels, -1), atLabel = b.mul(whole.getScale(), 1 - whole.smoothing());
  int64_t rows = nn::typeOf(labels).getDimSize(0);
  auto compare = [&](nn::Predicate predicate, int64_t number) { return b.compare(predicate, labels, b.like(labels, double(number))); };
  auto lossOf = [&](Value scores, Value of) {
    return builder.create<nn::CrossEntropyOp>(b.loc, scores, of, atLabel, builder.getI64IntegerAttr(-1), builder.getF32FloatAttr(0));
  };
  Value counts = compare(nn::Predicate::ne, whole.getIgnoreIndexAttr().getInt()), tile = b.like(labels, 0), loss, sum;
  SmallVector<Value> sums;
  bool masks = isMasked(logits);
  for (size_t k = 0; k < weights.size(); ++k) {
    Value from = compare(nn::Predicate::ge, weights.begin(k)), to = compare(nn::Predicate::lt, weights.ends[k]);
    Value here = builder.create<nn::AndOp>(b.loc, counts, builder.create<nn::AndOp>(b.loc, from, to));
    if (k) tile = b.select(from, b.like(labels, double(k)), tile);
    nn::Build at{builder, product.getLoc()};
    auto part = builder.create<nn::MatMulOp>(at.loc, product.getLhs(), weights.get(at, k), product.getTransposeLhs(),
                                             product.getTransposeRhs(), again);
    part.setKeepLhs(true); // so that logits made again are those of forward to the bit, however lhs is rounded where it is stored
    Value scores = logits.from(
        builder, part, [&](nn::Build of, Value classes) { return of.slice(classes, {weights.begin(k)}, {weights.extent(k)}, {1}); });
    // Of a tile whose classes are all masked by -inf the sum of exponentials would be none.
    if (masks) scores = b.max(scores, b.like(scores, -std::numeric_limits<float>::max()));
    auto term = lossOf(scores, b.select(here, b.sub(labels, b.like(labels, double(weights.begin(k)))), none));
    loss = loss ? b.add(loss, term.getLoss()) : term.getLoss();
    sums.push_back(b.reshape(term.getLse(), {rows, 1}));
    if (whole.smoothing() > 0) sum = sum ? b.add(sum, b.sumLast(scores)) : b.sumLast(scores);
  }
  Value all = builder.create<nn::ConcatOp>(b.loc, sums, builder.getI64IntegerAttr(1));
  auto between = lossOf(all, b.select(counts, tile, none));
  loss = b.add(loss, between.getLoss());
  if (whole.smoothing() > 0) {
    Value row = b.sub(between.getLse(), b.mul(sum, b.like(sum, 1.0 / double(weights.ends.back()))));
    Value scale = b.cast(b.reshape(whole.getScale(), {}), nn::elementOf(row));
    loss = b.add(loss, b.mul(b.sumAll(b.select(counts, row, b.like(row, 0))), b.mul(scale, whole.smoothing())));
  }
  whole.getLoss().replaceAllUsesWith(loss);
  for (Operation *op : llvm::reverse(logits.path)) op->erase();
}

} // namespace zero::train

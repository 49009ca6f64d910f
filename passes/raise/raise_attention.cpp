//===- raise_attention.cpp - nn-raise-attention ---------------------------------------------------===//
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "passes/raise/Passes.h"
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"
#include "passes/raise/probabilities.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_RAISEATTENTIONPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// Added to the scores: `added`, or `number` where the condition is `where` and 0 elsewhere; times `factor`.
struct Mask {
  Value added, condition;
  bool where = false;
  double number = 0, factor = 1;
};

/// What stands between the product q·kᵀ and the softmax.
struct Scores {
  MatMulOp product;
  double scale = 1;
  std::optional<double> softcap; ///< softcap · tanh(scale · score), below all masks
  SmallVector<Mask> masks;
  SmallVector<Mask> biases;      ///< those that depend on trainable parameters: values that are added
  SmallVector<int64_t, 2> heads; ///< [batch, heads] if a value of rank 4 shows them
};

/// Replacing a score by such a number is the same as adding it: it swallows every score.
bool swallows(std::optional<double> number) { return number && *number <= -1e30; }

/// More operations than this do not stand between a softmax and its product; sums, of which either operand may lead there, are tried
/// in both orders.
constexpr int kMostSteps = 64;

/// Adds to the masks and biases what is `added` to scores: sums, of which a part is learnt and the rest is not, are taken apart. Only a
/// bias that all samples share is one of attention: what is learnt and depends on samples, too, has the size of the scores.
bool takeTerms(Value added, double factor, Scores &scores, int &steps) {
  if (++steps > kMostSteps) return false;
  if (!dependsOnTrainable(added)) return scores.masks.push_back({.added = added, .condition = {}, .factor = factor}), true;
  auto below = [&](Value v) { return takeTerms(v, factor, scores, steps); };
  Operation *op = added.getDefiningOp();
  if (auto sum = dyn_cast<AddOp>(op)) return below(sum.getLhs()) && below(sum.getRhs());
  if (auto cast = dyn_cast<CastOp>(op)) return below(cast.getInput());
  if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && llvm::equal(broadcast.getDims(), llvm::seq<int64_t>(shapeOf(added).size())))
    return below(broadcast.getInput());
  if (auto select = dyn_cast<SelectOp>(op); select && !dependsOnTrainable(select.getCondition())) {
    bool where = swallows(splatOf(select.getOnTrue()));
    auto number = splatOf(where ? select.getOnTrue() : select.getOnFalse());
    if (swallows(number)) {
      scores.masks.push_back({.added = {}, .condition = select.getCondition(), .where = where, .number = *number, .factor = factor});
      return below(where ? select.getOnFalse() : select.getOnTrue());
    }
  }
  if (dependsOnSamples(added)) return false;
  scores.biases.push_back({.added = added, .condition = {}, .factor = factor});
  return true;
}

/// Follows scores from the softmax's operand down to their product; on failure `scores` is meaningless.
bool trace(Value v, Scores &scores, int &steps) {
  if (++steps > kMostSteps) return false;
  if (shapeOf(v).size() == 4 && scores.heads.empty()) scores.heads.assign({shapeOf(v)[0], shapeOf(v)[1]});
  Operation *op = v.getDefiningOp();
  if (!op) return false;
  if ((scores.product = dyn_cast<MatMulOp>(op))) return true;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return regroups(shapeOf(reshape.getInput()), shapeOf(v)) && trace(reshape.getInput(), scores, steps);
  if (auto cast = dyn_cast<CastOp>(op)) // softmax in f32 of scores in half precision; the operation keeps its scores in f32 anyway
    return isFloat(cast.getInput()) && trace(cast.getInput(), scores, steps);
  if (auto div = dyn_cast<DivOp>(op)) {
    auto number = splatOf(div.getRhs());
    scores.scale /= number.value_or(1);
    return number && trace(div.getLhs(), scores, steps);
  }
  if (isa<MulOp>(op))
    return inEitherOrder<MulOp>(v, [&](Value scaled, Value factor) {
      auto number = splatOf(factor);
      if (!number) return false;
      scores.scale *= *number;
      return trace(scaled, scores, steps);
    });
  if (auto tanh = dyn_cast<TanhOp>(op)) {
    if (scores.softcap || !(scores.scale > 0)) return false;
    scores.softcap = std::exchange(scores.scale, 1); // from here on the scale is that of what is capped
    return trace(tanh.getInput(), scores, steps);
  }
  if (scores.softcap && isa<AddOp, SelectOp>(op)) return false;
  if (isa<AddOp>(op)) {
    Scores before = scores;
    return inEitherOrder<AddOp>(v, [&](Value inner, Value mask) {
      scores = before;
      double factor = scores.scale; // of the sum
      return trace(inner, scores, steps) && takeTerms(mask, factor, scores, steps);
    });
  }
  if (auto select = dyn_cast<SelectOp>(op)) {
    bool where = swallows(splatOf(select.getOnTrue()));
    auto number = splatOf(where ? select.getOnTrue() : select.getOnFalse());
    scores.masks.push_back(
        {.added = {}, .condition = select.getCondition(), .where = where, .number = number.value_or(0), .factor = scores.scale});
    return swallows(number) && trace(where ? select.getOnFalse() : select.getOnTrue(), scores, steps) &&
           !dependsOnTrainable(select.getCondition());
  }
  return false;
}

/// `v` without the numbers it is multiplied by below movements; they go to `scale`.
Value unscaled(Value v, double &scale, OpBuilder &builder) {
  SmallVector<Operation *> moves; // on the way down
  Value bare = v;                 // below the last number, with so many of them above it
  size_t above = 0;
  for (Value at = v;;) {
    Operation *op = at.getDefiningOp();
    Value inner;
    if (isa_and_nonnull<MulOp>(op))
      inEitherOrder<MulOp>(at, [&](Value x, Value factor) {
        auto number = splatOf(factor);
        scale *= number.value_or(1);
        inner = number ? x : Value();
        return bool(number);
      });
    else if (auto div = dyn_cast_or_null<DivOp>(op); div && splatOf(div.getRhs())) {
      scale /= *splatOf(div.getRhs());
      inner = div.getLhs();
    }
    if (inner) {
      above = moves.size();
      bare = at = inner;
      continue;
    }
    if (!isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp>(op)) break;
    moves.push_back(op);
    at = op->getOperand(0);
  }
  for (Operation *op : llvm::reverse(ArrayRef(moves).take_front(above))) {
    Operation *copy = builder.clone(*op);
    copy->setOperand(0, bare);
    bare = copy->getResult(0);
  }
  return bare;
}

/// Whether a value may be added to the scores of `batch` samples and `heads` heads: without a sample's dimension, or one of each kind, or
/// with those of samples in several, as of images and the windows of each.
bool isMaskOf(ArrayRef<int64_t> shape, int64_t batch, int64_t heads) {
  if (shape.size() <= 3) return true;
  auto fits = [](int64_t size, int64_t of) { return size == 1 || size == of; };
  return fits(shape[shape.size() - 3], heads) && fits(ShapedType::getNumElements(shape.drop_back(3)), batch);
}

/// What a mask repeats, whose shape is `whole`: of rank 4 or more, with dimensions of size 1 where it does.
struct Repeated {
  Value value;
  SmallVector<int64_t> shape, whole;
  bool varies(size_t dims) const { // along so many of the first ones
    return llvm::any_of(ArrayRef(shape).take_front(dims), [](int64_t size) { return size != 1; });
  }
};

Repeated repeatedBy(Value v, int64_t batch, int64_t heads) {
  if (auto reshape = v.getDefiningOp<ReshapeOp>(); reshape && regroups(shapeOf(reshape.getInput()), shapeOf(v)) &&
                                                   shapeOf(reshape.getInput()).size() == 4 && shapeOf(reshape.getInput())[0] == batch &&
                                                   shapeOf(reshape.getInput())[1] == heads)
    v = reshape.getInput();
  SmallVector<int64_t> shape(shapeOf(v)), whole = shape;
  if (auto broadcast = v.getDefiningOp<BroadcastOp>()) {
    shape.assign(shape.size(), 1);
    for (auto [i, d] : llvm::enumerate(broadcast.getDims())) shape[d] = shapeOf(broadcast.getInput())[i];
    v = broadcast.getInput();
  }
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  if (shape.size() == 3) {
    bool repeated = shape[0] == 1;
    shape[0] = repeated ? 1 : heads;
    shape.insert(shape.begin(), repeated ? 1 : batch);
  }
  return {v, shape, whole};
}

/// Whether it is the same for all samples.
bool isSharedBySamples(Value v, int64_t batch, int64_t heads) {
  Repeated mask = repeatedBy(v, batch, heads);
  return !mask.varies(mask.shape.size() - 3);
}

/// A mask of the scores' shape as rank 4 with dimensions of size 1 where it repeats.
Value compactMask(Value mask, int64_t batch, int64_t heads, Build b) {
  Repeated repeated = repeatedBy(mask, batch, heads);
  auto &[v, shape, whole] = repeated;
  if (shape.size() > 4) { // samples in several dimensions, along all or none of which it repeats as one of rank 4
    size_t before = shape.size() - 3;
    auto samples = MutableArrayRef(shape).take_front(before);
    if (repeated.varies(before)) {
      v = b.reshape(v, shape);
      llvm::copy(ArrayRef(whole).take_front(before), shape.begin());
      v = b.broadcast(v, shape, llvm::to_vector(llvm::seq<int64_t>(shape.size())));
    }
    int64_t all = ShapedType::getNumElements(samples);
    shape.erase(shape.begin(), shape.begin() + before);
    shape.insert(shape.begin(), all);
  }
  return b.reshape(v, shape);
}

/// The sum of two masks of rank 4, each repeated where the other is larger.
Value sum(Value x, Value y, Build b) {
  SmallVector<int64_t> shape;
  for (auto [m, n] : llvm::zip(shapeOf(x), shapeOf(y))) shape.push_back(std::max(m, n));
  return b.add(b.broadcast(x, shape, {0, 1, 2, 3}), b.broadcast(y, shape, {0, 1, 2, 3}));
}

Value swapped(Value v, Build b) {
  bool single = shapeOf(v).size() == 2;
  return b.b.create<TransposeOp>(b.loc, v, single ? ArrayRef<int64_t>{1, 0} : ArrayRef<int64_t>{0, 2, 1});
}

/// [groups, rows, columns] of a stored operand; one group if it is of rank 2.
SmallVector<int64_t> logicalShape(Value v, bool transposed) {
  SmallVector<int64_t> shape(shapeOf(v));
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  if (transposed) std::swap(shape[1], shape[2]);
  return shape;
}

/// Rooted at the product of the probabilities with the values.
LogicalResult raiseAttention(MatMulOp op, PatternRewriter &r) {
  if (op.getTransposeLhs() || elementOf(op).isF64()) return failure();
  auto softmax = softmaxUnder(op.getLhs());
  Scores scores;
  int steps = 0;
  if (!softmax || !trace(softmax->scores, scores, steps)) return failure();
  MatMulOp product = scores.product;
  auto qs = logicalShape(product.getLhs(), product.getTransposeLhs());
  auto ks = logicalShape(product.getRhs(), !product.getTransposeRhs());
  auto vs = logicalShape(op.getRhs(), op.getTransposeRhs());
  if (ks != vs || ks[0] != qs[0]) return failure(); // heads of the values have another size
  // Batch and heads: any split of the groups is right; the export's own lets reshapes vanish.
  if (scores.heads.empty())
    if (auto reshape = product.getLhs().getDefiningOp<ReshapeOp>(); reshape && shapeOf(reshape.getInput()).size() == 4)
      scores.heads.assign({shapeOf(reshape.getInput())[0], shapeOf(reshape.getInput())[1]});
  int64_t groups = qs[0], batch = scores.heads.empty() ? groups : scores.heads[0], heads = scores.heads.empty() ? 1 : scores.heads[1];
  if (batch * heads != groups) batch = groups, heads = 1;
  if (softmax->sink && typeOf(softmax->sink).getNumElements() != heads) return failure();
  for (const Mask &mask : llvm::concat<Mask>(scores.masks, scores.biases))
    if (!isMaskOf(shapeOf(mask.added ? mask.added : mask.condition), batch, heads)) return failure();
  for (const Mask &bias : scores.biases) // learnt, from indices that a file says for each sample of a batch
    if (!isSharedBySamples(bias.added, batch, heads)) return failure();

  Build b{r, op.getLoc()};
  double scale = scores.scale;
  Value q = unscaled(product.getTransposeLhs() ? swapped(product.getLhs(), b) : product.getLhs(), scale, r);
  Value k = unscaled(product.getTransposeRhs() ? product.getRhs() : swapped(product.getRhs(), b), scale, r);
  Value v = op.getTransposeRhs() ? swapped(op.getRhs(), b) : op.getRhs();
  Value sink = softmax->sink ? b.reshape(softmax->sink, {heads}) : Value();
  auto softcap = scores.softcap ? r.getF32FloatAttr(float(*scores.softcap)) : FloatAttr();
  scale *= scores.softcap.value_or(1);
  auto termOf = [&](const Mask &part) {
    Value term = compactMask(part.added ? part.added : part.condition, batch, heads, b);
    if (part.condition) {
      auto type = withElement(term, r.getF32Type());
      Value zero = b.splat(type, 0), low = b.splat(type, part.number);
      term = part.where ? b.select(term, low, zero) : b.select(term, zero, low);
    }
    term = b.cast(term, r.getF32Type());
    return part.factor == 1 ? term : b.mul(term, part.factor);
  };
  auto sumOf = [&](ArrayRef<Mask> parts) {
    Value all;
    for (const Mask &part : parts) {
      Value term = termOf(part);
      all = all ? sum(all, term, b) : term;
    }
    return all;
  };
  Value mask = sumOf(scores.masks), bias = sumOf(scores.biases);
  if (bias) bias = b.reshape(b.broadcast(bias, {1, heads, qs[1], ks[1]}, {0, 1, 2, 3}), {heads, qs[1], ks[1]});
  auto shaped = [&](Value x, ArrayRef<int64_t> s) { return b.reshape(x, {batch, heads, s[1], s[2]}); };
  auto attention =
      r.create<AttentionOp>(b.loc, shaped(q, qs), shaped(k, ks), shaped(v, vs), mask, bias, sink, r.getF32FloatAttr(float(scale)),
                            /*causal=*/r.getBoolAttr(false), /*bshd=*/r.getBoolAttr(false), /*packed_kv_heads=*/IntegerAttr(),
                            /*band=*/DenseI64ArrayAttr(), softcap, /*beyond=*/FloatAttr());
  return r.replaceOp(op, b.reshape(attention.getResult(), shapeOf(op))), success();
}

struct RaiseAttention : impl::RaiseAttentionPassBase<RaiseAttention> {
  void runOnOperation() override {
    auto count = [&] {
      int64_t n = 0;
      getOperation().walk([&](AttentionOp) { ++n; });
      return n;
    };
    int64_t before = count();
    RewritePatternSet patterns(&getContext());
    populateTidyPatterns(patterns); // transpositions must meet for repeated heads to be seen
    patterns.add(raiseAttention);
    populateAttentionFormPatterns(patterns);
    if (failed(applyPatterns(getOperation(), std::move(patterns)))) return signalPassFailure();
    if (count() > 0) {
      IRRewriter rewriter(&getContext());
      DominanceInfo dominance(getOperation());
      eliminateCommonSubExpressions(rewriter, dominance, getOperation()); // the layers' masks become one
      simplifyMasks(getOperation());
      eraseDead(getOperation());
    }
    found += count() - before;
  }
};

} // namespace
} // namespace zero::raise

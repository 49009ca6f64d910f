//===- attention_form.cpp - the plainest form of an existing nn.attention -------------------------===//
#include "passes/raise/masks.h"
#include "passes/raise/patterns.h"
#include "runtime/plan/hidden.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

/// `op` with other keys, values and mask.
LogicalResult replace(AttentionOp op, Value k, Value v, Value mask, bool causal, PatternRewriter &r) {
  r.replaceOpWithNewOp<AttentionOp>(op, op.getQ(), k, v, mask, op.getBias(), op.getSink(), op.getScaleAttr(), r.getBoolAttr(causal),
                                    op.getBshdAttr(), op.getPackedKvHeadsAttr(), op.getBandAttr(), op.getSoftcapAttr(), op.getBeyondAttr());
  return success();
}

/// Heads that repeat others: the tensor that holds each once, in the layout of the operand, and how often it repeats.
struct Repeated {
  Value once;
  int64_t heads;
};

/// Sees `v` as [outer, heads, inner] elements with whole runs of heads equal.
std::optional<Repeated> repeatedHeads(Value v, int64_t outer, int64_t heads, int64_t inner) {
  auto broadcast = viewed(v).getDefiningOp<BroadcastOp>();
  if (!broadcast) return std::nullopt;
  auto to = shapeOf(broadcast), from = shapeOf(broadcast.getInput());
  int64_t before = 1, repeat = 1, after = 1;
  for (int64_t d = 0; d < int64_t(to.size()); ++d) {
    if (to[d] == 1) continue;
    auto at = llvm::find(broadcast.getDims(), d);
    bool repeats = at == broadcast.getDims().end() || from[at - broadcast.getDims().begin()] == 1;
    if (repeats && after > 1) return std::nullopt; // repeats in two places
    (repeats ? repeat : repeat > 1 ? after : before) *= to[d];
  }
  if (repeat == 1 || after != inner || before * repeat != outer * heads || before % outer != 0) return std::nullopt;
  return Repeated{broadcast.getInput(), before / outer};
}

/// How many heads of [batch, heads, keys, dim] (or of a transposition of [batch, keys, heads, dim]) differ; 0 if none repeats
/// in a way that can be seen.
int64_t keyHeads(Value v) {
  auto shape = shapeOf(v);
  if (auto repeated = repeatedHeads(v, shape[0], shape[1], shape[2] * shape[3])) return repeated->heads;
  auto transpose = v.getDefiningOp<TransposeOp>();
  if (!transpose || transpose.getPerm() != ArrayRef<int64_t>{0, 2, 1, 3}) return 0;
  auto repeated = repeatedHeads(transpose.getInput(), shape[0] * shape[2], shape[1], shape[3]);
  return repeated ? repeated->heads : 0;
}

/// Each of these heads once.
Value onceEach(Value v, Build b) {
  auto shape = shapeOf(v);
  if (auto repeated = repeatedHeads(v, shape[0], shape[1], shape[2] * shape[3]))
    return b.reshape(repeated->once, {shape[0], repeated->heads, shape[2], shape[3]});
  auto transpose = v.getDefiningOp<TransposeOp>();
  auto repeated = repeatedHeads(transpose.getInput(), shape[0] * shape[2], shape[1], shape[3]);
  Value once = b.reshape(repeated->once, {shape[0], shape[2], repeated->heads, shape[3]});
  return b.b.create<TransposeOp>(b.loc, once, ArrayRef<int64_t>{0, 2, 1, 3});
}

/// Keys and values that repeat heads: fewer key heads.
LogicalResult groupHeads(AttentionOp op, PatternRewriter &r) {
  int64_t heads = keyHeads(op.getK());
  if (heads == 0 || heads != keyHeads(op.getV())) return failure();
  Build b{r, op.getLoc()};
  return replace(op, onceEach(op.getK(), b), onceEach(op.getV(), b), op.getMask(), op.getCausal(), r);
}

/// A mask that is repeated is read where it is stored once.
LogicalResult narrowMask(AttentionOp op, PatternRewriter &r) {
  if (!op.getMask() || !op.getMask().getDefiningOp<BroadcastOp>()) return failure();
  return replace(op, op.getK(), op.getV(), narrowed(op.getMask(), Build{r, op.getLoc()}), op.getCausal(), r);
}

/// What an attention has instead of its mask.
struct Verdict {
  bool causal;
  std::optional<Band> band;
  Value mask; ///< null: none
  std::optional<float> beyond;
};

std::optional<float> beyondOf(AttentionOp op) {
  auto beyond = op.getBeyond();
  return beyond ? std::optional(beyond->convertToFloat()) : std::nullopt;
}

Verdict judge(AttentionOp op) {
  int64_t queries = shapeOf(op.getQ())[2], keys = shapeOf(op.getK())[2];
  Verdict verdict{op.getCausal(), std::nullopt, op.getMask(), beyondOf(op)};
  auto keep = [&](std::optional<Band> band, Value rest) {
    if (!band) return false;
    int64_t latest = keys - queries; // that the causal triangle lets the first query see
    if (!Band{band->first, op.getCausal() ? std::min(band->last, latest) : band->last}.reachesAll(queries, keys)) return false;
    verdict.mask = rest;
    bool fromFirst = band->first <= 1 - queries;
    if (fromFirst && band->last == latest)
      verdict.causal = true;
    else if (!fromFirst || band->last < keys - 1)
      verdict.band = band;
    return true;
  };
  auto [band, rest, number] = takeApart(op.getMask(), queries, keys);
  if (keep(band, rest)) {
    bool one = number && (!op.getCausal() || verdict.beyond == number); // of all bounds
    verdict.beyond = rest && one && std::isfinite(*number) && *number < plan::kHidden ? number : std::nullopt;
    return verdict;
  }
  auto mask = ConstantMask::of(op.getMask());
  if (!mask) return verdict;
  if (mask->isZero()) {
    verdict.mask = {};
  } else if (op.getCausal() && mask->seesTriangle(queries, keys)) {
    verdict.mask = {};
  } else if (!keep(mask->band(queries, keys), {}) && ArrayRef<int64_t>(mask->shape) != shapeOf(op.getMask())) {
    OpBuilder builder(op);
    Tensor narrow = mask->tensor(op.getContext()).cast(elementOf(op.getMask()));
    verdict.mask = builder.create<ConstantOp>(op.getLoc(), narrow.toAttribute());
  }
  return verdict;
}

} // namespace

void simplifyMasks(func::FuncOp function) {
  // All layers read one mask as a rule; it is looked at once.
  std::map<std::tuple<const void *, int64_t, int64_t, bool, std::optional<float>>, Verdict> verdicts;
  SmallVector<AttentionOp> attentions;
  function.walk([&](AttentionOp op) {
    if (op.getMask() && !op.getBand()) attentions.push_back(op);
  });
  for (AttentionOp op : attentions) {
    std::tuple key(op.getMask().getAsOpaquePointer(), shapeOf(op.getQ())[2], shapeOf(op.getK())[2], op.getCausal(), beyondOf(op));
    auto [at, isNew] = verdicts.try_emplace(key);
    if (isNew) at->second = judge(op);
    const Verdict &verdict = at->second;
    if (verdict.mask == op.getMask()) continue;
    op.getMaskMutable().clear();
    if (verdict.mask) op.getMaskMutable().assign(verdict.mask);
    if (verdict.band) op.setBandAttr(Builder(op).getDenseI64ArrayAttr({verdict.band->first, verdict.band->last}));
    op.setCausal(verdict.causal);
    if (verdict.beyond && verdict.mask)
      op.setBeyondAttr(Builder(op).getF32FloatAttr(*verdict.beyond));
    else
      op.removeBeyondAttr();
  }
}

void populateAttentionFormPatterns(RewritePatternSet &patterns) { patterns.add(groupHeads).add(narrowMask); }

} // namespace zero::raise

//===- attention_form.cpp - the plainest form of an existing nn.attention -------------------------===//
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

/// `op` with other keys, values and mask.
LogicalResult replace(AttentionOp op, Value k, Value v, Value mask, bool causal, PatternRewriter &r) {
  r.replaceOpWithNewOp<AttentionOp>(op, op.getQ(), k, v, mask, op.getScaleAttr(), r.getBoolAttr(causal), op.getBshdAttr(),
                                    op.getPackedKvHeadsAttr(), op.getBandAttr());
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
  auto broadcast = op.getMask() ? op.getMask().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!broadcast) return failure();
  SmallVector<int64_t> shape(4, 1);
  for (auto [i, d] : llvm::enumerate(broadcast.getDims())) shape[d] = shapeOf(broadcast.getInput())[i];
  Value narrow = Build{r, op.getLoc()}.reshape(broadcast.getInput(), shape);
  return replace(op, op.getK(), op.getV(), narrow, op.getCausal(), r);
}

/// A constant mask, with dimensions along which nothing changes reduced to one. Where the program selects between two numbers, the
/// choices are kept instead of the numbers: a fourth of the memory.
class ConstantMask {
public:
  SmallVector<int64_t> shape;

  static std::optional<ConstantMask> of(Value v) {
    const int64_t limit = int64_t(1) << 26;
    ConstantMask mask;
    auto select = v.getDefiningOp<SelectOp>();
    auto onTrue = select ? splatOf(select.getOnTrue()) : std::nullopt, onFalse = select ? splatOf(select.getOnFalse()) : std::nullopt;
    auto cells = onTrue && onFalse ? constantOf(select.getCondition(), limit) : constantOf(v, limit);
    if (!cells || cells->size() == 0) return std::nullopt;
    mask.choices = onTrue && onFalse;
    mask.onTrue = float(onTrue.value_or(0)), mask.onFalse = float(onFalse.value_or(0));
    mask.shape.assign(cells->shape().begin(), cells->shape().end());
    mask.cells = mask.choices ? std::move(cells->bytes) : cells->cast(Float32Type::get(v.getContext())).bytes;
    for (int d = 0; d < 4; ++d) mask.dropEqual(d);
    return mask;
  }

  bool isZero() const {
    for (int64_t i = 0, n = ShapedType::getNumElements(shape); i < n; ++i)
      if (at(i) != 0) return false;
    return true;
  }

  /// Whether it hides exactly what comes later; where `already` causal, whether it hides nothing more.
  bool isCausal(int64_t queries, int64_t keys, bool already) const {
    return keys >= queries && isBand({1 - queries, keys - queries}, queries, keys, already);
  }

  /// Where it lets each query see the keys of a band and hides all others.
  std::optional<Band> band(int64_t queries, int64_t keys) const {
    if (!isOfPositions(queries, keys)) return std::nullopt;
    auto sees = [&](int64_t i, int64_t j) { return at(i * keys + j) == 0; };
    Band band{1 - queries, keys - 1}; // as far as the first and the last query tell
    for (int64_t j = 0; j < keys && !sees(queries - 1, j); ++j) band.first = j + 1 - (queries - 1);
    for (int64_t j = keys - 1; j >= 0 && !sees(0, j); --j) band.last = j - 1;
    if (band.first > band.last || !isBand(band, queries, keys, /*already=*/false)) return std::nullopt;
    return band;
  }

  Tensor tensor(MLIRContext *context) const {
    Tensor result(RankedTensorType::get(shape, Float32Type::get(context)));
    for (int64_t i = 0; i < result.size(); ++i) result.data<float>()[i] = at(i);
    return result;
  }

private:
  std::vector<char> cells; ///< f32, or one byte per choice
  bool choices = false;
  float onTrue = 0, onFalse = 0;

  bool isOfPositions(int64_t queries, int64_t keys) const {
    return shape[0] == 1 && shape[1] == 1 && shape[2] == queries && shape[3] == keys;
  }

  /// Whether it hides nothing in the band, and everything outside unless that is hidden `already`.
  bool isBand(Band band, int64_t queries, int64_t keys, bool already) const {
    if (!isOfPositions(queries, keys)) return false;
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j) {
        float v = at(i * keys + j);
        bool seen = i + band.first <= j && j <= i + band.last;
        if (seen ? v != 0 : !already && !(v <= -1e4f)) return false;
      }
    return true;
  }

  float at(int64_t i) const { return choices ? (cells[i] ? onTrue : onFalse) : reinterpret_cast<const float *>(cells.data())[i]; }

  void dropEqual(int d) {
    if (shape[d] == 1) return;
    int64_t slice = choices ? 1 : sizeof(float);
    for (int i = d + 1; i < 4; ++i) slice *= shape[i];
    int64_t run = slice * shape[d], size = int64_t(cells.size());
    for (int64_t base = 0; base < size; base += run)
      for (int64_t k = slice; k < run; k += slice)
        if (std::memcmp(cells.data() + base, cells.data() + base + k, slice) != 0) return;
    for (int64_t r = 1; r < size / run; ++r) std::memmove(cells.data() + r * slice, cells.data() + r * run, slice);
    cells.resize(size / shape[d]);
    shape[d] = 1;
  }
};

/// What is to become of a mask: null in `replacement` where it goes.
struct Verdict {
  bool known = false, causal = false;
  Value replacement;
};

Verdict judge(AttentionOp op) {
  Verdict verdict;
  auto mask = ConstantMask::of(op.getMask());
  if (!mask) return verdict;
  verdict.known = true;
  verdict.causal = op.getCausal();
  if (mask->isZero()) return verdict;
  if (mask->isCausal(shapeOf(op.getQ())[2], shapeOf(op.getK())[2], op.getCausal())) {
    verdict.causal = true;
  } else if (ArrayRef<int64_t>(mask->shape) == shapeOf(op.getMask())) {
    verdict.replacement = op.getMask();
  } else {
    OpBuilder builder(op);
    Tensor narrow = mask->tensor(op.getContext()).cast(elementOf(op.getMask()));
    verdict.replacement = builder.create<ConstantOp>(op.getLoc(), narrow.toAttribute());
  }
  return verdict;
}

} // namespace

void simplifyConstantMasks(func::FuncOp function) {
  // All layers read one mask as a rule; it is looked at once.
  std::map<std::tuple<const void *, int64_t, int64_t, bool>, Verdict> verdicts;
  SmallVector<AttentionOp> attentions;
  function.walk([&](AttentionOp op) {
    if (op.getMask()) attentions.push_back(op);
  });
  for (AttentionOp op : attentions) {
    std::tuple key(op.getMask().getAsOpaquePointer(), shapeOf(op.getQ())[2], shapeOf(op.getK())[2], op.getCausal());
    auto [at, isNew] = verdicts.try_emplace(key);
    if (isNew) at->second = judge(op);
    const Verdict &verdict = at->second;
    if (!verdict.known || (verdict.replacement == op.getMask() && verdict.causal == op.getCausal())) continue;
    op.getMaskMutable().clear();
    if (verdict.replacement) op.getMaskMutable().assign(verdict.replacement);
    op.setCausal(verdict.causal);
  }
}

std::optional<Band> bandOf(AttentionOp op) {
  auto mask = op.getMask() ? ConstantMask::of(op.getMask()) : std::nullopt;
  return mask ? mask->band(shapeOf(op.getQ())[2], shapeOf(op.getK())[2]) : std::nullopt;
}

void populateAttentionFormPatterns(RewritePatternSet &patterns) { patterns.add(groupHeads).add(narrowMask); }

} // namespace zero::raise

//===- attention_form.cpp - the plainest form of an existing nn.attention -------------------------===//
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

/// `op` with other keys, values and mask.
LogicalResult replace(AttentionOp op, Value k, Value v, Value mask, bool causal, PatternRewriter &r) {
  r.replaceOpWithNewOp<AttentionOp>(op, op.getQ(), k, v, mask, op.getScaleAttr(), r.getBoolAttr(causal));
  return success();
}

/// Heads that repeat others: the tensor that holds each once, in the layout of the operand, and how often it repeats.
struct Repeated {
  Value once;
  int64_t heads;
};

/// Sees `v` as [outer, heads, inner] elements with whole runs of heads equal.
std::optional<Repeated> repeatedHeads(Value v, int64_t outer, int64_t heads, int64_t inner) {
  auto broadcast = beforeReshapes(v).getDefiningOp<BroadcastOp>();
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

/// A constant mask in f32, with dimensions along which nothing changes reduced to one.
struct ConstantMask {
  SmallVector<int64_t> shape;
  std::vector<float> values;

  explicit ConstantMask(const Tensor &tensor) : shape(tensor.shape()) {
    Tensor f32 = tensor.cast(Float32Type::get(tensor.type.getContext()));
    values.assign(f32.data<float>().begin(), f32.data<float>().end());
    for (int d = 0; d < 4; ++d) dropEqual(d);
  }

  void dropEqual(int d) {
    int64_t inner = 1;
    for (int i = d + 1; i < 4; ++i) inner *= shape[i];
    int64_t run = shape[d] * inner;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != values[int64_t(i) / run * run + int64_t(i) % inner]) return;
    std::vector<float> first;
    for (size_t i = 0; i < values.size(); ++i)
      if (int64_t(i) % run < inner) first.push_back(values[i]);
    values = std::move(first);
    shape[d] = 1;
  }

  bool isZero() const {
    return llvm::all_of(values, [](float v) { return v == 0; });
  }

  /// Whether it forbids exactly what comes later; where `already` causal, whether it forbids nothing more.
  bool isCausal(int64_t queries, int64_t keys, bool already) const {
    if (shape[0] != 1 || shape[1] != 1 || shape[2] != queries || shape[3] != keys || keys < queries) return false;
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j) {
        float v = values[i * keys + j];
        bool seen = j <= i + keys - queries;
        if (seen ? v != 0 : !already && !(v <= -1e4f)) return false;
      }
    return true;
  }
};

LogicalResult simplifyConstantMask(AttentionOp op, PatternRewriter &r) {
  auto tensor = op.getMask() ? constantOf(op.getMask()) : std::nullopt;
  if (!tensor) return failure();
  ConstantMask mask(*tensor);
  int64_t queries = shapeOf(op.getQ())[2], keys = shapeOf(op.getK())[2];
  if (mask.isZero()) return replace(op, op.getK(), op.getV(), nullptr, op.getCausal(), r);
  if (mask.isCausal(queries, keys, op.getCausal())) return replace(op, op.getK(), op.getV(), nullptr, true, r);
  if (ArrayRef<int64_t>(mask.shape) == tensor->shape()) return failure();
  Tensor narrow(RankedTensorType::get(mask.shape, r.getF32Type()));
  llvm::copy(mask.values, narrow.data<float>().begin());
  Value constant = r.create<ConstantOp>(op.getLoc(), narrow.cast(tensor->elementType()).toAttribute());
  return replace(op, op.getK(), op.getV(), constant, op.getCausal(), r);
}

} // namespace

void populateAttentionFormPatterns(RewritePatternSet &patterns) { patterns.add(groupHeads).add(narrowMask).add(simplifyConstantMask); }

} // namespace zero::raise

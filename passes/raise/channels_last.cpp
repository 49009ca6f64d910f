//===- channels_last.cpp - nn-channels-last --------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "compiler/nn/patterns.h"
#include "passes/raise/Passes.h"
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_CHANNELSLASTPASS
#include "passes/raise/Passes.h.inc"

namespace {

using Ints = SmallVector<int64_t>;

/// Of images and volumes. A matrix of each sample that is transposed is as often a transformer's.
constexpr int64_t kLeastRank = 4;

/// The permutation that makes [n, spatial…, c] to [n, c, spatial…].
Ints channelsFirst(int64_t rank) {
  Ints perm{0, rank - 1};
  for (int64_t d = 1; d + 1 < rank; ++d) perm.push_back(d);
  return perm;
}

/// Where a dimension of [n, c, spatial…] is in [n, spatial…, c].
int64_t placeOf(int64_t dim, int64_t rank) { return dim == 0 ? 0 : dim == 1 ? rank - 1 : dim - 1; }

/// One number for each dimension, in the order of [n, spatial…, c].
Ints reordered(ArrayRef<int64_t> each) {
  Ints result(each.size());
  for (auto [dim, number] : llvm::enumerate(each)) result[placeOf(int64_t(dim), int64_t(each.size()))] = number;
  return result;
}

RankedTensorType reordered(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(reordered(tensor.getShape()));
}

/// x where v is x with its channels brought to the front.
Value under(Value v) {
  auto op = v.getDefiningOp<TransposeOp>();
  int64_t rank = op ? int64_t(op.getPerm().size()) : 0;
  return rank >= kLeastRank && op.getPerm() == ArrayRef<int64_t>(channelsFirst(rank)) ? op.getInput() : Value();
}

Value toFront(PatternRewriter &r, Value v) { return r.create<TransposeOp>(v.getLoc(), v, channelsFirst(typeOf(v).getRank())); }

/// The places of a repeated tensor's dimensions once channels are last, and the order in which it needs them.
std::pair<Ints, Ints> placesOf(BroadcastOp op) {
  Ints places, order = llvm::to_vector(llvm::seq<int64_t>(0, op.getDims().size()));
  for (int64_t dim : op.getDims()) places.push_back(placeOf(dim, typeOf(op).getRank()));
  llvm::sort(order, [&](int64_t a, int64_t b) { return places[a] < places[b]; });
  llvm::sort(places);
  return {places, order};
}

/// Whether v can be had with its channels last without a pass over memory: where it is transposed, or repeats what keeps its order.
bool isFree(Value v) {
  if (under(v) || splatOf(v)) return true;
  auto op = v.getDefiningOp<BroadcastOp>();
  if (!op) return false;
  Ints order = placesOf(op).second;
  llvm::erase_if(order, [&](int64_t dim) { return typeOf(op.getInput()).getDimSize(dim) == 1; });
  return llvm::is_sorted(order);
}

Value channelsLast(PatternRewriter &r, Value v) {
  if (Value x = under(v)) return x;
  RankedTensorType type = reordered(v.getType());
  if (auto number = splatOf(v)) return Build{r, v.getLoc()}.splat(type, *number);
  auto op = v.getDefiningOp<BroadcastOp>();
  auto [places, order] = placesOf(op);
  Value input = llvm::is_sorted(order) ? op.getInput() : r.create<TransposeOp>(op.getLoc(), op.getInput(), order).getResult();
  return r.create<BroadcastOp>(op.getLoc(), type, input, places);
}

struct SinkBelowElementwise : OpTraitRewritePattern<Elementwise> {
  using OpTraitRewritePattern::OpTraitRewritePattern;
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &r) const override {
    if (op->getNumResults() != 1 || llvm::none_of(op->getOperands(), under) || !llvm::all_of(op->getOperands(), isFree)) return failure();
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return channelsLast(r, v); });
    OperationState state(op->getLoc(), op->getName(), operands, reordered(op->getResult(0).getType()), op->getAttrs());
    return r.replaceOp(op, toFront(r, r.create(state)->getResult(0))), success();
  }
};

LogicalResult sinkBelowSlice(SliceOp op, PatternRewriter &r) {
  Value x = under(op.getInput());
  if (!x) return failure();
  Value slice = r.create<SliceOp>(op.getLoc(), x, reordered(op.getStarts()), reordered(op.getSizes()), reordered(op.getSteps()));
  return r.replaceOp(op, toFront(r, slice)), success();
}

LogicalResult sinkBelowPad(PadOp op, PatternRewriter &r) {
  Value x = under(op.getInput());
  if (!x) return failure();
  Value pad = r.create<PadOp>(op.getLoc(), x, op.getValue(), reordered(op.getLow()), reordered(op.getHigh()), reordered(op.getInterior()));
  return r.replaceOp(op, toFront(r, pad)), success();
}

LogicalResult sinkBelowConcat(ConcatOp op, PatternRewriter &r) {
  auto parts = llvm::map_to_vector(op.getInputs(), under);
  if (!llvm::all_of(parts, [](Value x) { return bool(x); })) return failure();
  Value whole = r.create<ConcatOp>(op.getLoc(), parts, placeOf(op.getDim(), typeOf(op).getRank()));
  return r.replaceOp(op, toFront(r, whole)), success();
}

/// The result, of fewer dimensions, is brought into the order that it had.
LogicalResult sinkBelowReduce(ReduceOp op, PatternRewriter &r) {
  Value x = under(op.getInput());
  if (!x) return failure();
  int64_t rank = typeOf(x).getRank();
  Ints dims, stay;
  for (int64_t d = 0; d < rank; ++d) (llvm::is_contained(op.getDims(), d) ? dims : stay).push_back(placeOf(d, rank));
  llvm::sort(dims);
  Value reduced = Build{r, op.getLoc()}.reduce(op.getKind(), x, dims);
  if (llvm::is_sorted(stay)) return r.replaceOp(op, reduced), success();
  Ints sorted = stay, order;
  llvm::sort(sorted);
  for (int64_t place : stay) order.push_back(llvm::find(sorted, place) - sorted.begin());
  return r.replaceOpWithNewOp<TransposeOp>(op, reduced, order), success();
}

/// Of the spatial dimensions only.
LogicalResult sinkBelowReshape(ReshapeOp op, PatternRewriter &r) {
  Value x = under(op.getInput());
  ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op);
  if (!x || to.size() < 3 || from.take_front(2) != to.take_front(2)) return failure();
  return r.replaceOp(op, toFront(r, Build{r, op.getLoc()}.reshape(x, reordered(to)))), success();
}

LogicalResult sinkBelowBroadcast(BroadcastOp op, PatternRewriter &r) {
  Value x = under(op.getInput());
  if (!x || op.getDims()[0] != 0 || op.getDims()[1] != 1) return failure();
  Value repeated = r.create<BroadcastOp>(op.getLoc(), reordered(op.getType()), x, placesOf(op).first);
  return r.replaceOp(op, toFront(r, repeated)), success();
}

struct ChannelsLast : impl::ChannelsLastPassBase<ChannelsLast> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSimplifyPatterns(patterns);
    patterns.add<SinkBelowElementwise>(&getContext());
    patterns.add(sinkBelowSlice).add(sinkBelowPad).add(sinkBelowConcat).add(sinkBelowReduce).add(sinkBelowReshape).add(sinkBelowBroadcast);
    if (failed(applyPatterns(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

} // namespace
} // namespace zero::raise

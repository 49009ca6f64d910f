//===- patterns_movement.cpp - identities of operations that move elements ----------------------------===//
#include "compiler/nn/build.h"
#include "compiler/nn/patterns.h"

using namespace mlir;

namespace zero::nn {
namespace {

/// Movement of one repeated number gives that number in another shape.
template <typename Op> LogicalResult moveSplat(Op op, PatternRewriter &r) {
  auto number = splatOf(op->getOperand(0));
  if (!number || (!isFloat(op) && std::abs(*number) > double(int64_t(1) << 52))) return failure();
  r.replaceOp(op, Build{r, op.getLoc()}.like(op, *number));
  return success();
}

LogicalResult foldBroadcast(BroadcastOp op, PatternRewriter &r) {
  if (typeOf(op.getInput()).getNumElements() == typeOf(op).getNumElements()) // only dimensions of size 1 are new
    return r.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput()), success();
  auto inner = op.getInput().getDefiningOp<BroadcastOp>();
  if (inner) {
    SmallVector<int64_t> dims;
    for (int64_t d : inner.getDims()) dims.push_back(op.getDims()[d]);
    return r.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getInput(), dims), success();
  }
  // broadcast(reshape(x)) where the reshape only adds or drops dimensions of size 1.
  auto reshape = op.getInput().getDefiningOp<ReshapeOp>();
  if (!reshape) return failure();
  auto from = typeOf(reshape.getInput()).getShape(), to = typeOf(reshape).getShape();
  SmallVector<int64_t> dims;
  size_t t = 0;
  for (int64_t size : from) {
    if (size == 1) return failure(); // which of the result's it becomes is open
    while (t < to.size() && to[t] == 1) ++t;
    if (t == to.size() || to[t] != size) return failure();
    dims.push_back(op.getDims()[t++]);
  }
  return r.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), reshape.getInput(), dims), success();
}

LogicalResult foldTranspose(TransposeOp op, PatternRewriter &r) {
  if (auto inner = op.getInput().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> perm;
    for (int64_t p : op.getPerm()) perm.push_back(inner.getPerm()[p]);
    return r.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getInput(), perm), success();
  }
  // The order of the dimensions that are not 1 stays: nothing moves.
  auto shape = typeOf(op.getInput()).getShape();
  int64_t before = -1;
  for (int64_t p : op.getPerm()) {
    if (shape[p] == 1) continue;
    if (p < before) return failure();
    before = p;
  }
  return r.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput()), success();
}

/// A slice of which no element is one that the pad has put there. Where `y[:, t] = …` stands in a loop, gradients are slices of pads of
/// slices, as deep as the loop is long.
LogicalResult sliceInsidePad(SliceOp op, PadOp pad, PatternRewriter &r) {
  SmallVector<int64_t> starts(op.getStarts());
  auto shape = typeOf(pad.getInput()).getShape();
  for (size_t i = 0; i < starts.size(); ++i) {
    if (op.getSizes()[i] == 0 || (pad.getInterior()[i] && shape[i] > 1)) return failure();
    starts[i] -= pad.getLow()[i];
    int64_t last = starts[i] + (op.getSizes()[i] - 1) * op.getSteps()[i];
    if (std::min(starts[i], last) < 0 || std::max(starts[i], last) >= shape[i]) return failure();
  }
  return r.replaceOpWithNewOp<SliceOp>(op, op.getType(), pad.getInput(), starts, op.getSizes(), op.getSteps()), success();
}

LogicalResult foldSlice(SliceOp op, PatternRewriter &r) {
  if (auto pad = op.getInput().getDefiningOp<PadOp>()) return sliceInsidePad(op, pad, r);
  if (auto inner = op.getInput().getDefiningOp<SliceOp>()) {
    SmallVector<int64_t> starts, steps;
    for (size_t i = 0; i < op.getStarts().size(); ++i) {
      starts.push_back(inner.getStarts()[i] + op.getStarts()[i] * inner.getSteps()[i]);
      steps.push_back(inner.getSteps()[i] * op.getSteps()[i]);
    }
    return r.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getInput(), starts, op.getSizes(), steps), success();
  }
  // A slice that lies within one of the joined tensors.
  auto concat = op.getInput().getDefiningOp<ConcatOp>();
  if (!concat) return failure();
  int64_t dim = concat.getDim(), first = op.getStarts()[dim], last = first + (op.getSizes()[dim] - 1) * op.getSteps()[dim], begin = 0;
  if (op.getSizes()[dim] == 0) return failure();
  for (Value piece : concat.getInputs()) {
    int64_t end = begin + typeOf(piece).getDimSize(dim);
    if (std::min(first, last) >= begin && std::max(first, last) < end) {
      SmallVector<int64_t> starts(op.getStarts());
      starts[dim] -= begin;
      return r.replaceOpWithNewOp<SliceOp>(op, op.getType(), piece, starts, op.getSizes(), op.getSteps()), success();
    }
    begin = end;
  }
  return failure();
}

LogicalResult foldPad(PadOp op, PatternRewriter &r) {
  if (op.getInput().getType() != op.getType()) return failure();
  return r.replaceOp(op, op.getInput()), success();
}

/// One piece, or neighbouring slices of one tensor that make it whole again.
LogicalResult foldConcat(ConcatOp op, PatternRewriter &r) {
  if (op.getInputs().size() == 1) return r.replaceOp(op, op.getInputs()[0]), success();
  Value whole;
  int64_t end = 0, dim = op.getDim();
  for (Value piece : op.getInputs()) {
    auto slice = piece.getDefiningOp<SliceOp>();
    if (!slice || (whole && slice.getInput() != whole)) return failure();
    whole = slice.getInput();
    for (size_t i = 0; i < slice.getStarts().size(); ++i)
      if (slice.getSteps()[i] != 1 || slice.getStarts()[i] != (int64_t(i) == dim ? end : 0)) return failure();
    end += slice.getSizes()[dim];
  }
  if (!whole || whole.getType() != op.getType()) return failure();
  return r.replaceOp(op, whole), success();
}

/// Dimensions of size 1, sums of sums, and values that were repeated before they are summed.
LogicalResult foldReduce(ReduceOp op, PatternRewriter &r) {
  Build b{r, op.getLoc()};
  auto from = typeOf(op.getInput()).getShape();
  if (llvm::all_of(op.getDims(), [&](int64_t d) { return from[d] == 1; }))
    return r.replaceOp(op, b.reshape(op.getInput(), typeOf(op).getShape())), success();
  // Sums alone: a maximum of maxima has another gradient than one over all dimensions, where numbers are equal.
  bool isSum = op.getKind() == ReductionKind::sum;
  if (auto inner = op.getInput().getDefiningOp<ReduceOp>(); inner && isSum && inner.getKind() == op.getKind() && inner->hasOneUse()) {
    SmallVector<int64_t> kept, dims(inner.getDims());
    for (int64_t i = 0; i < typeOf(inner.getInput()).getRank(); ++i)
      if (!llvm::is_contained(inner.getDims(), i)) kept.push_back(i);
    for (int64_t d : op.getDims()) dims.push_back(kept[d]);
    llvm::sort(dims);
    return r.replaceOp(op, b.reduce(op.getKind(), inner.getInput(), dims)), success();
  }
  auto broadcast = op.getInput().getDefiningOp<BroadcastOp>();
  if (!broadcast || (op.getKind() == ReductionKind::sum && !isFloat(op))) return failure();
  auto narrow = typeOf(broadcast.getInput()).getShape();
  double count = 1;
  SmallVector<int64_t> remaining, dims; // the operand's dimensions still to reduce; where those it keeps go in the result
  bool repeated = false;
  for (int64_t d = 0, next = 0; d < int64_t(from.size()); ++d) {
    const int64_t *at = llvm::find(broadcast.getDims(), d);
    bool present = at != broadcast.getDims().end(), reduced = llvm::is_contained(op.getDims(), d);
    int64_t i = at - broadcast.getDims().begin();
    bool grew = !present || narrow[i] != from[d];
    if (reduced && grew) {
      count *= double(from[d]);
      repeated = true;
    }
    if (reduced && present) remaining.push_back(i);
    if (!reduced && present) dims.push_back(next);
    next += !reduced;
  }
  if (!repeated) return failure();
  Value small = b.reduce(op.getKind(), broadcast.getInput(), remaining);
  if (op.getKind() == ReductionKind::sum) small = b.mul(small, count);
  return r.replaceOp(op, b.broadcast(small, typeOf(op).getShape(), dims)), success();
}

bool swapsLastTwo(TransposeOp op) {
  int64_t rank = op.getPerm().size();
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (op.getPerm()[i] != i) return false;
  return rank >= 2 && op.getPerm()[rank - 2] == rank - 1 && op.getPerm()[rank - 1] == rank - 2;
}

LogicalResult transposeOperands(MatMulOp op, PatternRewriter &r) {
  auto lhs = op.getLhs().getDefiningOp<TransposeOp>(), rhs = op.getRhs().getDefiningOp<TransposeOp>();
  bool left = lhs && swapsLastTwo(lhs), right = rhs && swapsLastTwo(rhs);
  if (!left && !right) return failure();
  r.replaceOpWithNewOp<MatMulOp>(op, left ? lhs.getInput() : op.getLhs(), right ? rhs.getInput() : op.getRhs(), op.getOnto(),
                                 op.getTransposeLhs() != left, op.getTransposeRhs() != right, op.getRecompute());
  return success();
}

/// (A B)^T = B^T A^T
LogicalResult transposeProduct(TransposeOp op, PatternRewriter &r) {
  auto product = op.getInput().getDefiningOp<MatMulOp>();
  if (!product || product.getOnto() || !product->hasOneUse() || !swapsLastTwo(op)) return failure();
  r.replaceOpWithNewOp<MatMulOp>(op, product.getRhs(), product.getLhs(), !product.getTransposeRhs(), !product.getTransposeLhs(),
                                 product.getRecompute());
  return success();
}

} // namespace

void populateMovementPatterns(RewritePatternSet &patterns) {
  patterns.add(moveSplat<BroadcastOp>).add(moveSplat<TransposeOp>).add(moveSplat<SliceOp>).add(moveSplat<ReshapeOp>);
  patterns.add(foldBroadcast).add(foldTranspose).add(foldSlice).add(foldPad).add(foldConcat).add(foldReduce);
  patterns.add(transposeOperands).add(transposeProduct);
}

} // namespace zero::nn

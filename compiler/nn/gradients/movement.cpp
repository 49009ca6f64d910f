//===- movement.cpp - gradients of operations that move elements -----------------------------------===//
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {
using Gradients = SmallVectorImpl<Value>;

/// What was repeated is summed: over new dimensions and over those of size 1 that grew.
LogicalResult BroadcastOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  auto from = typeOf(getInput()).getShape(), to = typeOf(getResult()).getShape();
  SmallVector<int64_t> summed;
  for (int64_t r = 0; r < int64_t(to.size()); ++r) {
    const int64_t *at = llvm::find(getDims(), r);
    bool kept = at != getDims().end() && from[at - getDims().begin()] == to[r];
    if (!kept) summed.push_back(r);
  }
  out[0] = b.reshape(b.reduce(ReductionKind::sum, d[0], summed), from);
  return success();
}

LogicalResult ReshapeOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.reshape(d[0], typeOf(getInput()).getShape());
  return success();
}

LogicalResult TransposeOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  SmallVector<int64_t> inverse(getPerm().size());
  for (auto [i, p] : llvm::enumerate(getPerm())) inverse[p] = i;
  out[0] = b.create<TransposeOp>(getLoc(), d[0], b.getDenseI64ArrayAttr(inverse));
  return success();
}

/// The elements go back to where they were taken, zeros everywhere else. Dimensions read backwards are first turned
/// round, so that the padding between neighbours is never negative.
LogicalResult SliceOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  auto from = typeOf(getInput()).getShape();
  if (typeOf(d[0]).getNumElements() == 0) {
    out[0] = b.like(getInput(), 0);
    return success();
  }
  size_t rank = from.size();
  SmallVector<int64_t> starts(rank, 0), turn(rank, 1), low(rank), high(rank), interior(rank);
  bool backwards = false;
  for (size_t i = 0; i < rank; ++i) {
    int64_t first = getStarts()[i], step = getSteps()[i], size = getSizes()[i];
    int64_t last = first + (size - 1) * step;
    if (step < 0) {
      backwards = true;
      starts[i] = size - 1;
      turn[i] = -1;
      std::swap(first, last);
      step = -step;
    }
    low[i] = first;
    high[i] = from[i] - 1 - last;
    interior[i] = size > 1 ? step - 1 : 0;
  }
  Value forwards = backwards ? b.slice(d[0], starts, getSizes(), turn) : Value(d[0]);
  out[0] = b.pad(forwards, low, high, interior);
  return success();
}

LogicalResult PadOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  SmallVector<int64_t> steps;
  for (int64_t between : getInterior()) steps.push_back(between + 1);
  out[0] = Build{b, getLoc()}.slice(d[0], getLow(), typeOf(getInput()).getShape(), steps);
  return success();
}

LogicalResult ConcatOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  SmallVector<int64_t> starts(typeOf(d[0]).getRank(), 0), steps(starts.size(), 1);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    out[i] = b.slice(d[0], starts, typeOf(input).getShape(), steps);
    starts[getDim()] += typeOf(input).getDimSize(getDim());
  }
  return success();
}

LogicalResult GatherOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = b.create<ScatterAddOp>(getLoc(), getInput().getType(), getIndices(), d[0]);
  return success();
}

LogicalResult ScatterAddOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[1] = b.create<GatherOp>(getLoc(), d[0], getIndices());
  return success();
}

/// One element per row receives the gradient: written as a comparison with the index, which fuses with its neighbours.
LogicalResult TakeAlongOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  auto type = typeOf(getInput());
  int64_t columns = type.getShape().back();
  Value here =
      b.compare(Predicate::eq, b.iota(withElement(getInput(), elementOf(getIndices())), type.getRank() - 1), b.rows(getIndices(), columns));
  out[0] = b.select(here, b.rows(d[0], columns), b.like(getInput(), 0));
  return success();
}

} // namespace zero::nn

//===- probabilities.cpp - the softmax that an attention's probabilities come from ----------------===//
#include "passes/raise/probabilities.h"
#include "passes/raise/match.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {

bool regroups(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() >= 2 && b.size() >= 2 && a.take_back(2) == b.take_back(2) &&
         ShapedType::getNumElements(a) == ShapedType::getNumElements(b);
}

namespace {

/// Scores less the largest of their row, which a softmax subtracts anyway.
Value withoutPeak(Value scores) {
  auto sub = scores.getDefiningOp<SubOp>();
  Value row = sub ? perRow(sub.getRhs()) : Value();
  auto peak = row ? viewed(row).getDefiningOp<ReduceOp>() : ReduceOp();
  return peak && peak.getKind() == ReductionKind::max && peak.getInput() == sub.getLhs() ? sub.getLhs() : scores;
}

/// Scores of rank 4 joined with a column before or after them that is one number for each head, of which `kept` leaves the scores' part.
std::optional<Probabilities> withSink(SliceOp kept, SoftmaxOp softmax) {
  auto joined = withoutPeak(softmax.getInput()).getDefiningOp<ConcatOp>();
  if (!joined || joined.getInputs().size() != 2 || joined.getDim() != 3 || shapeOf(joined).size() != 4) return std::nullopt;
  bool first = shapeOf(joined.getInputs()[0])[3] == 1;
  Value scores = joined.getInputs()[first], column = joined.getInputs()[!first];
  auto broadcast = column.getDefiningOp<BroadcastOp>();
  bool ofHeads = broadcast && shapeOf(column)[3] == 1 && typeOf(broadcast.getInput()).getNumElements() == shapeOf(column)[1];
  for (size_t i = 0; ofHeads && i < broadcast.getDims().size(); ++i)
    ofHeads = broadcast.getDims()[i] == 1 || shapeOf(broadcast.getInput())[i] == 1;
  const int64_t begin[] = {0, 0, 0, first};
  bool leaves = kept.getStarts() == ArrayRef(begin) && shapeOf(kept) == shapeOf(scores) &&
                llvm::all_of(kept.getSteps(), [](int64_t s) { return s == 1; });
  if (!ofHeads || !leaves) return std::nullopt;
  return Probabilities{scores, broadcast.getInput()};
}

} // namespace

std::optional<Probabilities> softmaxUnder(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<SoftmaxOp>(op) && !v.hasOneUse()) return std::nullopt;
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      if (!regroups(shapeOf(reshape.getInput()), shapeOf(v))) return std::nullopt;
      v = reshape.getInput();
    } else if (auto cast = dyn_cast<CastOp>(op); cast && isFloat(cast.getInput()) && isFloat(v)) {
      v = cast.getInput();
    } else if (auto dropout = dyn_cast<DropoutOp>(op); dropout && dropout.getRate().isZero()) {
      v = dropout.getInput();
    } else if (auto select = dyn_cast<SelectOp>(op)) {
      auto isNan = select.getCondition().getDefiningOp<IsNanOp>();
      auto softmax = select.getOnFalse().getDefiningOp<SoftmaxOp>();
      bool guard = isNan && softmax && isNan.getInput() == softmax && isNan->hasOneUse() && splatOf(select.getOnTrue()) == 0.0;
      if (!guard || llvm::range_size(softmax->getUses()) != 2) return std::nullopt;
      return Probabilities{softmax.getInput(), {}};
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      auto softmax = slice.getInput().getDefiningOp<SoftmaxOp>();
      return softmax && softmax->hasOneUse() ? withSink(slice, softmax) : std::nullopt;
    } else {
      auto softmax = dyn_cast<SoftmaxOp>(op);
      if (!softmax || !softmax->hasOneUse()) return std::nullopt;
      return Probabilities{withoutPeak(softmax.getInput()), {}};
    }
  }
  return std::nullopt;
}

} // namespace zero::raise

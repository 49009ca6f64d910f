//===- NnFolds.cpp - folds that need no arithmetic -----------------------------------------------===//
// Arithmetic on constants is the evaluator's (compiler/nn/eval); here are only the identities that let
// other passes ignore operations which do nothing.
#include "compiler/nn/Nn.h"

using namespace mlir;

namespace zero::nn {

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult CastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

OpFoldResult BroadcastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) { // reshape(reshape(x)) = reshape(x)
    getInputMutable().assign(inner.getInput());
    return getInput().getType() == getType() ? getInput() : getResult();
  }
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput())) return dense.reshape(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [i, p] : llvm::enumerate(getPerm()))
    if (int64_t(i) != p) return {};
  return getInput();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool unit = llvm::all_of(getSteps(), [](int64_t s) { return s == 1; });
  return unit && getInput().getType() == getType() ? getInput() : Value();
}

} // namespace zero::nn

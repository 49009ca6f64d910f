//===- fold_constants.cpp - nn-fold-constants -----------------------------------------------------===//
#include "compiler/nn/eval/eval.h"
#include "passes/raise/Passes.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_FOLDCONSTANTSPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// Operations that cost nothing to repeat at run time and would only blow a constant up.
bool cheaperThanConstant(Operation *op) { return isa<BroadcastOp, IotaOp>(op); }

struct FoldConstants : impl::FoldConstantsPassBase<FoldConstants> {
  using FoldConstantsPassBase::FoldConstantsPassBase;

  DenseMap<Value, Tensor> known; ///< values of this function that depend on constants alone

  bool evaluable(Operation &op) {
    return canEvaluate(&op) && !isa<RandomOp, DropoutOp>(op) && llvm::all_of(op.getOperands(), [&](Value v) { return known.count(v); }) &&
           llvm::all_of(op.getResultTypes(), [&](Type t) { return cast<ShapedType>(t).getNumElements() <= limit; });
  }

  /// A constant in place of `v`, which something that stays reads; below operations that are cheaper than their result, the
  /// constant is made of their operands.
  void materialise(Value v) {
    auto value = known.find(v);
    Operation *op = v.getDefiningOp();
    if (value == known.end() || isa<ConstantOp>(op)) return;
    ElementsAttr attribute = value->second.toAttribute();
    auto dense = dyn_cast<DenseElementsAttr>(attribute);
    if (cheaperThanConstant(op) && !(dense && dense.isSplat())) {
      for (Value operand : op->getOperands()) materialise(operand);
      return;
    }
    OpBuilder builder(op);
    v.replaceAllUsesWith(builder.create<ConstantOp>(op->getLoc(), attribute));
    ++folded;
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || function->hasAttr(NnDialect::kKernelAttr)) return;
    known.clear();
    SmallVector<Value> read; // by operations that stay
    for (Operation &op : function.getBody().front()) {
      SmallVector<const Tensor *> operands;
      if (!evaluable(op)) {
        llvm::append_range(read, op.getOperands());
        continue;
      }
      for (Value operand : op.getOperands()) operands.push_back(&known.find(operand)->second);
      auto results = evaluate(&op, operands);
      if (failed(results)) return signalPassFailure();
      for (auto [value, result] : llvm::zip(op.getResults(), *results)) known[value] = std::move(result);
    }
    for (Value v : read) materialise(v);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op)) op.erase();
    known.clear();
  }
};

} // namespace
} // namespace zero::raise

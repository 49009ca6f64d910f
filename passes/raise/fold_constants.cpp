//===- fold_constants.cpp - nn-fold-constants -----------------------------------------------------===//
#include "compiler/nn/eval/eval.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "passes/raise/Passes.h"
#include "passes/raise/patterns.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_FOLDCONSTANTSPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// Operations that cost nothing to repeat at run time and would only blow a constant up.
bool cheaperThanConstant(Operation *op) { return isa<BroadcastOp, IotaOp>(op); }

/// Big constants are resources, which do not become one by being equal as dense elements do.
void mergeResources(func::FuncOp function) {
  std::multimap<uint64_t, ConstantOp> seen;
  for (ConstantOp op : llvm::make_early_inc_range(function.getOps<ConstantOp>())) {
    auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue());
    AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
    if (!blob) continue;
    auto sameAs = [&](ConstantOp other) {
      ArrayRef<char> a = blob->getData(), b = cast<DenseResourceElementsAttr>(other.getValue()).getRawHandle().getBlob()->getData();
      return op.getType() == other.getType() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
    };
    uint64_t hash = llvm::xxh3_64bits(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(blob->getData().data()), blob->getData().size()));
    auto [begin, end] = seen.equal_range(hash);
    auto twin = std::find_if(begin, end, [&](auto &entry) { return sameAs(entry.second); });
    if (twin == end) {
      seen.emplace(hash, op);
      continue;
    }
    op.getResult().replaceAllUsesWith(twin->second.getResult()); // the twin stands before it
    op.erase();
  }
}

struct FoldConstants : impl::FoldConstantsPassBase<FoldConstants> {
  using FoldConstantsPassBase::FoldConstantsPassBase;

  DenseSet<Value> constant;      ///< values of this function that depend on constants alone
  DenseMap<Value, Tensor> known; ///< what they are; of constants as soon as something is computed from them, since they can be large

  bool evaluable(Operation &op) {
    return canEvaluate(&op) && !op.hasTrait<Draws>() && llvm::all_of(op.getOperands(), [&](Value v) { return constant.count(v); }) &&
           llvm::all_of(op.getResultTypes(), [&](Type t) { return cast<ShapedType>(t).getNumElements() <= limit; });
  }

  LogicalResult compute(Operation &op) {
    for (Value operand : op.getOperands())
      if (!known.count(operand) && failed(compute(*operand.getDefiningOp()))) return failure();
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands()) operands.push_back(&known.find(operand)->second);
    auto results = evaluate(&op, operands);
    if (failed(results)) return failure();
    for (auto [value, result] : llvm::zip(op.getResults(), *results)) known[value] = std::move(result);
    return success();
  }

  /// A constant in place of `v`, which something that stays reads; below operations that are cheaper than their result, the
  /// constant is made of their operands.
  void materialise(Value read) {
    for (SmallVector<Value> work{read}; !work.empty();) {
      Value v = work.pop_back_val();
      auto value = known.find(v);
      Operation *op = v.getDefiningOp();
      if (value == known.end() || isa<ConstantOp>(op)) continue;
      ElementsAttr attribute = value->second.toAttribute();
      auto dense = dyn_cast<DenseElementsAttr>(attribute);
      if (cheaperThanConstant(op) && !(dense && dense.isSplat())) {
        llvm::append_range(work, op->getOperands());
        continue;
      }
      OpBuilder builder(op);
      v.replaceAllUsesWith(builder.create<ConstantOp>(op->getLoc(), attribute));
      ++folded;
    }
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || function->hasAttr(NnDialect::kKernelAttr)) return;
    constant.clear(), known.clear();
    SmallVector<Value> read; // by operations that stay
    for (Operation &op : function.getBody().front()) {
      if (!evaluable(op)) {
        llvm::append_range(read, op.getOperands());
        continue;
      }
      constant.insert(op.getResults().begin(), op.getResults().end());
      if (!isa<ConstantOp>(op) && failed(compute(op))) return signalPassFailure();
    }
    for (Value v : read) materialise(v);
    eraseDead(function);
    mergeResources(function);
    constant.clear(), known.clear();
  }
};

} // namespace
} // namespace zero::raise

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

  DenseSet<Value> constant;      // values of this function that depend on constants alone
  DenseSet<Value> written;       // of these, what becomes a constant
  DenseMap<Value, int64_t> uses; // of those that are computed: by what is computed from them, and one if they are written
  DenseMap<Value, Tensor> known; // what is computed, until its last use: in a deep model it is much in all

  bool evaluable(Operation &op) {
    return canEvaluate(&op) && !op.hasTrait<Draws>() && llvm::all_of(op.getOperands(), [&](Value v) { return constant.count(v); }) &&
           llvm::all_of(op.getResultTypes(), [&](Type t) { return cast<ShapedType>(t).getNumElements() <= limit; });
  }

  /// What becomes a constant so that `read` may stay as it is: an iota and a broadcast cost nothing to repeat at run time, and would only
  /// blow a constant up.
  static Value belowRepetition(Value read) {
    while (auto broadcast = read.getDefiningOp<BroadcastOp>()) read = broadcast.getInput();
    return read;
  }

  bool isComputed(Operation &op) const {
    return llvm::any_of(op.getResults(), [&](Value v) { return uses.contains(v); });
  }

  LogicalResult compute(Operation &op) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands()) operands.push_back(&known.find(operand)->second);
    auto results = evaluate(&op, operands);
    if (failed(results)) return failure();
    for (auto [value, result] : llvm::zip(op.getResults(), *results))
      if (uses.contains(value)) known[value] = std::move(result);
    for (Value operand : op.getOperands()) release(operand);
    for (Value value : op.getResults()) write(value);
    return success();
  }

  void release(Value v) {
    if (--uses[v] == 0) known.erase(v);
  }

  /// A constant in place of `v`, if it is to be one.
  void write(Value v) {
    if (!written.contains(v)) return;
    Tensor tensor = std::move(known[v]);
    Value made = OpBuilder(v.getDefiningOp()).create<ConstantOp>(v.getLoc(), tensor.toAttribute());
    v.replaceAllUsesWith(made);
    constant.insert(made);
    if ((uses[made] = uses[v] - 1)) known[made] = std::move(tensor);
    known.erase(v);
    ++folded;
  }

  /// What repeats one number is a splat, and costs nothing either.
  void foldSplats(Block &body) {
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (!isa<BroadcastOp, IotaOp>(op) || !constant.contains(op.getResult(0))) continue;
      auto type = cast<RankedTensorType>(op.getResult(0).getType());
      OpBuilder builder(&op);
      TypedAttr number;
      if (auto iota = dyn_cast<IotaOp>(op)) {
        if (type.getDimSize(iota.getDim()) == 1) number = builder.getZeroAttr(type.getElementType());
      } else if (auto below = op.getOperand(0).getDefiningOp<ConstantOp>()) {
        if (auto splat = dyn_cast<SplatElementsAttr>(below.getValue())) number = splat.getSplatValue<TypedAttr>();
      }
      if (!number) continue;
      op.getResult(0).replaceAllUsesWith(builder.create<ConstantOp>(op.getLoc(), DenseElementsAttr::get(type, number)));
      op.erase();
      ++folded;
    }
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || function->hasAttr(NnDialect::kKernelAttr)) return;
    constant.clear(), written.clear(), uses.clear(), known.clear();
    Block &body = function.getBody().front();
    for (Operation &op : body) {
      if (evaluable(op)) {
        constant.insert(op.getResults().begin(), op.getResults().end());
        continue;
      }
      for (Value read : op.getOperands()) {
        Value v = belowRepetition(read);
        if (constant.contains(v) && !isa<ConstantOp, IotaOp>(v.getDefiningOp()) && written.insert(v).second) uses[v] = 1;
      }
    }
    for (Operation &op : llvm::reverse(body))
      if (isComputed(op))
        for (Value operand : op.getOperands()) ++uses[operand];
    for (Operation &op : llvm::make_early_inc_range(body))
      if (isComputed(op) && failed(compute(op))) return signalPassFailure();
    foldSplats(body);
    eraseDead(function);
    mergeResources(function);
  }
};

} // namespace
} // namespace zero::raise

//===- table_rows.cpp - nn-table-rows -----------------------------------------------------------------------===//
#include "compiler/nn/library/table_rows.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/access.h"
#include "passes/fuse/kernel_table.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_TABLEROWSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

/// Smaller tables share a bucket with others, and are gathered with it.
constexpr int64_t kLeastElements = 64 << 10;

/// Whether `value` is computed from `from` and constants alone. Masks are not where something has made the indices again for
/// backward: those are of the first ones.
bool isComputedFrom(ArrayRef<Value> from, Value value) {
  if (llvm::is_contained(from, value)) return true;
  Operation *op = value.getDefiningOp();
  return op && llvm::all_of(op->getOperands(), [&](Value operand) { return isComputedFrom(from, operand); });
}

struct TableRows : impl::TableRowsPassBase<TableRows> {
  using TableRowsPassBase::TableRowsPassBase;

  void runOnOperation() override {
    KernelTable kernels(getOperation());
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> functions;
    for (auto f : getOperation().getOps<func::FuncOp>())
      if (!f.isExternal() && !f->hasAttr(NnDialect::kKernelAttr)) functions.push_back(f);
    for (func::FuncOp f : functions) {
      llvm::MapVector<StringAttr, SmallVector<GatherOp>> lookups; // of each table
      for (auto gather : f.getOps<GatherOp>())
        if (auto get = gather.getInput().getDefiningOp<GetOp>()) lookups[get.getParameterAttr().getAttr()].push_back(gather);
      for (auto &[name, gathers] : lookups) {
        auto table = symbols.lookup<ParameterOp>(name);
        if (!areFew(table, gathers)) continue;
        if (world > 1)
          for (GatherOp gather : gathers) launch(gather, {gather.getInput(), gather.getIndices()}, kLooksUp, kernels);
        for (auto gradient : f.getOps<GradientOp>())
          if (gradient.getParameterAttr().getAttr() == name) separate(gradient.getValue(), table, kernels);
      }
    }
  }

  /// Whether rows for all ranks are at most half of the table, so that moving them is worth two collectives more. Tiles are not for ranks.
  bool areFew(ParameterOp parameter, ArrayRef<GatherOp> gathers) const {
    if (parameter.getTileOf() && world > 1) return false;
    ArrayRef<int64_t> table = parameter.getTileOf() ? *parameter.getWhole() : cast<RankedTensorType>(parameter.getType()).getShape();
    int64_t rows = 0;
    for (GatherOp gather : gathers) rows += elementsOf(gather.getIndices());
    return table.size() == 2 && table[0] * table[1] >= kLeastElements && table[0] <= kMostTableRows && 2 * world * rows <= table[0];
  }

  /// What adds rows to the rest of a gradient, or to nothing; one lookup after another.
  void separate(Value sum, ParameterOp table, KernelTable &kernels) {
    Operation *op = sum.getDefiningOp();
    auto scatter = dyn_cast_or_null<ScatterAddOp>(op);
    SmallVector<Value> operands;
    if (auto add = dyn_cast_or_null<AddOp>(op); add && sum.hasOneUse())
      for (unsigned i : {1, 0})
        if (auto summand = add->getOperand(i).getDefiningOp<ScatterAddOp>(); !scatter && summand && summand.getResult().hasOneUse()) {
          separate(add->getOperand(1 - i), table, kernels);
          operands = {add->getOperand(1 - i)};
          scatter = summand;
        }
    if (!scatter || !sum.hasOneUse()) return;
    std::optional<RowUpdates> rows = RowUpdates{scatter.getIndices(), scatter.getUpdates()};
    if (table.getTileOf()) rows = updatesOfTable(scatter, (*table.getBegin())[0]);
    if (!rows) return;
    auto isAlone = [&](Value operand) { return isComputedFrom({rows->indices, rows->updates}, operand); };
    if (!llvm::all_of(scatter->getOperands(), isAlone)) return;
    operands.append({rows->indices, rows->updates});
    launch(op, operands, kAddsRows, kernels);
    if (scatter != op) scatter.erase();
  }

  /// A kernel of its own for `op`, and for what it alone computes from the operands.
  void launch(Operation *op, ArrayRef<Value> operands, const char *mark, KernelTable &kernels) {
    const KernelTable::Entry &entry =
        kernels.kernelFor(SmallVector<Value>(op->getResults()), operands, op->getParentOfType<func::FuncOp>());
    if (!entry.function) return; // nn-fuse will say why
    OpBuilder b(op);
    auto made = b.create<LaunchOp>(op->getLoc(), op->getResultTypes(), func::FuncOp(entry.function).getSymName(), operands);
    made->setAttr(mark, b.getUnitAttr());
    op->replaceAllUsesWith(made);
    op->erase();
    ++launches;
  }
};

} // namespace
} // namespace zero::fuse

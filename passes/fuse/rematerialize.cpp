//===- rematerialize.cpp - nn-rematerialize ----------------------------------------------------------------===//
#include "compiler/nn/library/products.h"
#include "compiler/nn/rows.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/forward.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_REMATERIALIZEPASS
#include "passes/fuse/Passes.h.inc"

namespace {

/// Multiply-adds of the products and the attention of a function.
uint64_t productsOf(func::FuncOp function) {
  uint64_t sum = 0;
  for (Operation &op : function.getBody().front()) sum += multiplyAddsOf(&op);
  return sum;
}

struct Rematerialize : impl::RematerializePassBase<Rematerialize> {
  using RematerializePassBase::RematerializePassBase;

  void runOnOperation() override {
    auto train = getOperation().lookupSymbol<func::FuncOp>("train");
    if (!train || !Forward::lossOf(train)) return;
    KernelTable kernels(getOperation());
    Forward forward(train, kernels);
    std::vector<uint32_t> ends = blockEnds(forward.made);
    Keeping keeping = keep(forward.made, ends, keepBytes);
    uint64_t before = productsOf(train), read = 0;
    for (const Made &made : forward.made)
      if (made.read) read += made.bytes;

    auto blockOf = [&](uint32_t i) { return size_t(llvm::upper_bound(ends, i) - ends.begin()); };
    auto anchors = firstReaders(forward, keeping, ends.size(), blockOf);
    std::vector<IRMapping> copies(ends.size()); // of each block: an earlier one is made again later, for itself alone
    for (auto [block, anchor] : llvm::enumerate(anchors)) {
      if (!anchor) continue;
      OpBuilder b(anchor);
      forward.makeAgain(keeping.again, block ? ends[block - 1] : 0, ends[block], b, copies[block]);
    }
    for (Operation *op = forward.backward; op; op = op->getNextNode())
      for (OpOperand &operand : op->getOpOperands())
        if (auto i = forward.indexOf(operand.get()); i && keeping.dropped[*i] && !isView(op)) {
          OpBuilder b(op);
          operand.set(Forward::latest(operand.get(), b, copies[blockOf(*i)]));
        }
    removeUnused(train);
    blocks += keeping.blocks;
    keptBytes += keeping.bytes;
    Builder b(&getContext());
    getOperation()->setAttr(kRematerialized, b.getI64ArrayAttr({int64_t(keeping.blocks), int64_t(ends.size()), int64_t(keeping.bytes),
                                                                int64_t(read), int64_t(productsOf(train) - before), int64_t(before)}));
  }

  /// Where backward first reads what a block has dropped; null for a block that drops nothing.
  std::vector<Operation *> firstReaders(const Forward &forward, const Keeping &keeping, size_t blocks,
                                        llvm::function_ref<size_t(uint32_t)> blockOf) {
    std::vector<Operation *> first(blocks);
    for (Operation *op = forward.backward; op; op = op->getNextNode())
      for (Value v : op->getOperands())
        if (auto i = forward.indexOf(v); i && keeping.dropped[*i] && !isView(op)) {
          Operation *&known = first[blockOf(*i)];
          if (!known) known = op;
        }
    return first;
  }

  /// What nobody reads any more, since all of its readers look elsewhere now, and kernels that were tried.
  void removeUnused(func::FuncOp train) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(train.getBody().front())))
      if (isMemoryEffectFree(&op) && op.getNumResults() > 0 && op.use_empty()) op.erase();
    llvm::StringSet<> used;
    getOperation().walk([&](LaunchOp launch) { used.insert(launch.getKernel()); });
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (kernel->hasAttr(NnDialect::kKernelAttr) && !used.contains(kernel.getSymName())) kernel.erase();
  }
};

} // namespace
} // namespace zero::fuse

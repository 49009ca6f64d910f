//===- expand_blocks.cpp - nn-expand-blocks ---------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/fuse/Passes.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_EXPANDBLOCKSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

/// Groups as indices: a block of none, whose rows are zeros, takes part as one of the first.
Value indexOf(Build &b, Value groupOf) { return b.max(groupOf, b.like(groupOf, 0)); }

Value product(Build &b, BlockMatMulOp op) {
  SmallVector<int64_t> shape(typeOf(op.getRhs()).getShape());
  shape[0] = typeOf(op.getLhs()).getDimSize(0);
  Value matrices = b.b.create<GatherOp>(b.loc, withShape(op.getRhs(), shape), op.getRhs(), indexOf(b, op.getGroupOf()));
  return b.b.create<MatMulOp>(b.loc, op.getLhs(), matrices, false, op.getTransposeRhs());
}

Value sum(Build &b, BlockMatMulSumOp op) {
  Value each = b.b.create<MatMulOp>(b.loc, op.getLhs(), op.getRhs(), true, false);
  return b.b.create<ScatterAddOp>(b.loc, op.getType(), indexOf(b, op.getGroupOf()), each);
}

struct ExpandBlocks : impl::ExpandBlocksPassBase<ExpandBlocks> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (!isa<BlockMatMulOp, BlockMatMulSumOp>(op)) return;
      OpBuilder builder(op);
      Build b{builder, op->getLoc()};
      auto blocks = dyn_cast<BlockMatMulOp>(op);
      op->getResult(0).replaceAllUsesWith(blocks ? product(b, blocks) : sum(b, cast<BlockMatMulSumOp>(op)));
      op->erase();
      ++expanded;
    });
  }
};

} // namespace
} // namespace zero::fuse

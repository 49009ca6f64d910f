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

/// `taken` in blocks of some group, `others` in the rest; `taken` itself where that is no difference.
Value inGroups(Build &b, Value groupOf, bool partial, Value taken, Value others) {
  if (!partial) return taken;
  Value here = b.compare(Predicate::ge, groupOf, b.like(groupOf, 0));
  return b.select(b.broadcast(here, typeOf(taken).getShape(), {0}), taken, others ? others : b.like(taken, 0));
}

Value product(Build &b, BlockMatMulOp op) {
  SmallVector<int64_t> shape(typeOf(op.getRhs()).getShape());
  shape[0] = typeOf(op.getLhs()).getDimSize(0);
  Value matrices = b.b.create<GatherOp>(b.loc, withShape(op.getRhs(), shape), op.getRhs(), indexOf(b, op.getGroupOf()));
  Value each = b.b.create<MatMulOp>(b.loc, op.getLhs(), matrices, false, op.getTransposeRhs());
  return inGroups(b, op.getGroupOf(), op.getAllGroups().has_value(), each, op.getOnto());
}

/// Rows of a table that is added to, so that each of a GPU's blocks has some; and columns that its threads go over together at least.
constexpr int64_t kRows = 2048, kColumns = 1024;

/// What is made for each block, in as many parts as the gradients of few matrices need to keep all threads busy.
Value sum(Build &b, BlockMatMulSumOp op) {
  Value lhs = inGroups(b, op.getGroupOf(), op.getAllGroups().has_value(), op.getLhs(), {});
  Value each = b.b.create<MatMulOp>(b.loc, lhs, op.getRhs(), true, false), group = indexOf(b, op.getGroupOf());
  ArrayRef<int64_t> shape = op.getType().getShape();
  int64_t blocks = typeOf(each).getDimSize(0), elements = shape[1] * shape[2], parts = 1;
  while (shape[0] * parts < kRows && elements % (parts * 2) == 0 && elements / (parts * 2) >= kColumns) parts *= 2;
  auto index = withShape(group, {blocks, parts});
  Value rows = b.add(b.mul(b.broadcast(group, index.getShape(), {0}), double(parts)), b.iota(index, 1));
  auto table = withShape(op, {shape[0] * parts, elements / parts});
  return b.reshape(b.b.create<ScatterAddOp>(b.loc, table, rows, b.reshape(each, {blocks, parts, elements / parts})), shape);
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

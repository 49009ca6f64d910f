//===- raise_grouped.cpp - nn-raise-grouped -------------------------------------------------------===//
#include "passes/raise/Passes.h"
#include "passes/raise/groups.h"
#include "passes/raise/match.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_RAISEGROUPEDPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// The matrices that are looked up, one for each row of a product, and by what.
GatherOp lookup(Value v, int64_t rows) {
  auto gather = viewed(v).getDefiningOp<GatherOp>();
  if (!gather) return {};
  auto table = typeOf(gather.getInput()), all = typeOf(v);
  bool each = table.getRank() == 3 && typeOf(gather.getIndices()).getNumElements() == rows && all.getDimSize(0) == rows &&
              table.getShape().drop_front() == all.getShape().drop_front() && table.getDimSize(0) > 1;
  return each ? gather : GatherOp();
}

struct RaiseGrouped : impl::RaiseGroupedPassBase<RaiseGrouped> {
  using RaiseGroupedPassBase::RaiseGroupedPassBase;

  LogicalResult raise(MatMulOp op, PatternRewriter &r) {
    auto result = typeOf(op.getResult());
    if (result.getRank() != 3 || op.getOnto()) return failure();
    int64_t rows = result.getDimSize(0);
    // A row is a matrix of one row to the left of the one that is looked up, or one of one column to its right.
    bool left = result.getDimSize(1) == 1, right = result.getDimSize(2) == 1;
    GatherOp looked = left ? lookup(op.getRhs(), rows) : GatherOp();
    bool isLeft = bool(looked);
    if (!looked && right) looked = lookup(op.getLhs(), rows);
    if (!looked || rows >= kMostGroupedRows) return failure();
    Value input = isLeft ? op.getLhs() : op.getRhs(), matrices = looked.getInput();
    // y = x · op(M) as it stands, or (op(M) · x)ᵀ = xᵀ · op(M)ᵀ.
    bool transpose = isLeft ? op.getTransposeRhs() : !op.getTransposeLhs();
    int64_t groups = typeOf(matrices).getDimSize(0), k = typeOf(input).getNumElements() / rows, n = result.getNumElements() / rows;
    // Rows are put in order by a number for each row and group, in place of a matrix for each row.
    if (groups > k * n) return failure();
    Value indices = looked.getIndices();
    r.setInsertionPointAfterValue(indices);
    Build after{r, indices.getLoc()};
    indices = after.cast(after.reshape(indices, {rows}), r.getI64Type());
    GroupRowsOp places = groupRows(indices, groups, {height, blocks}, r);
    r.setInsertionPoint(op);
    Build b{r, op.getLoc()};
    Value product = r.create<GroupedMatMulOp>(op.getLoc(), withShape(input, {rows, n}), b.reshape(input, {rows, k}), ValueRange{matrices},
                                              places.getSlot(), places.getRow(), places.getGroupOf(), transpose);
    r.replaceOp(op, b.reshape(product, result.getShape()));
    ++found;
    return success();
  }

  void runOnOperation() override {
    SmallVector<MatMulOp> products;
    getOperation().walk([&](MatMulOp op) { products.push_back(op); });
    PatternRewriter rewriter(&getContext());
    for (MatMulOp op : products) {
      rewriter.setInsertionPoint(op);
      (void)raise(op, rewriter);
    }
  }
};

} // namespace
} // namespace zero::raise

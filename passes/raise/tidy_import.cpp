//===- tidy_import.cpp - nn-tidy-import -----------------------------------------------------------===//
#include "compiler/nn/patterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/raise/Passes.h"
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_TIDYIMPORTPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// How many trailing dimensions a reshape keeps as they are, at most `most`.
int64_t keptTrailing(ReshapeOp op, int64_t most) {
  auto from = shapeOf(op.getInput()), to = shapeOf(op);
  int64_t kept = 0;
  while (kept < most && kept < int64_t(std::min(from.size(), to.size())) && from[from.size() - 1 - kept] == to[to.size() - 1 - kept])
    ++kept;
  return kept;
}

bool swapsLastTwo(ArrayRef<int64_t> perm) {
  int64_t rank = perm.size();
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (perm[i] != i) return false;
  return rank >= 2 && perm[rank - 2] == rank - 1 && perm[rank - 1] == rank - 2;
}

SmallVector<int64_t> lastTwoSwapped(int64_t rank) {
  auto perm = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(perm[rank - 2], perm[rank - 1]);
  return perm;
}

/// transpose(reshape(transpose(x))) where the reshape regroups leading dimensions and the outer transposition exchanges the
/// last two: the outer one moves inside, where it merges.
LogicalResult transposeBeforeReshape(TransposeOp op, PatternRewriter &r) {
  auto reshape = op.getInput().getDefiningOp<ReshapeOp>();
  if (!reshape || !swapsLastTwo(op.getPerm()) || keptTrailing(reshape, 2) < 2 || !reshape.getInput().getDefiningOp<TransposeOp>())
    return failure();
  Value inner = r.create<TransposeOp>(op.getLoc(), reshape.getInput(), lastTwoSwapped(shapeOf(reshape.getInput()).size()));
  return r.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner), success();
}

/// x where v = reshape(exchange of the last two dimensions of x) with leading dimensions regrouped, under v's leading dimensions.
Value swappedBeforeReshape(Value v, PatternRewriter &r) {
  auto reshape = v.getDefiningOp<ReshapeOp>();
  auto transpose = reshape ? reshape.getInput().getDefiningOp<TransposeOp>() : TransposeOp();
  if (!transpose || keptTrailing(reshape, 2) < 2) return nullptr;
  int64_t rank = transpose.getPerm().size();
  if (transpose.getPerm()[rank - 2] != rank - 1 || !swapsLastTwo(transpose.getPerm())) return nullptr;
  SmallVector<int64_t> shape(shapeOf(v));
  std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
  return Build{r, v.getLoc()}.reshape(transpose.getInput(), shape);
}

LogicalResult transposeOperands(MatMulOp op, PatternRewriter &r) {
  Value lhs = swappedBeforeReshape(op.getLhs(), r), rhs = swappedBeforeReshape(op.getRhs(), r);
  if (!lhs && !rhs) return failure();
  r.replaceOpWithNewOp<MatMulOp>(op, lhs ? lhs : op.getLhs(), rhs ? rhs : op.getRhs(), op.getTransposeLhs() != bool(lhs),
                                 op.getTransposeRhs() != bool(rhs));
  return success();
}

/// Consecutive rows by constant indices are a slice (position embeddings).
LogicalResult gatherToSlice(GatherOp op, PatternRewriter &r) {
  auto indices = constantOf(op.getIndices(), 1 << 20);
  if (!indices || indices->size() == 0) return failure();
  Tensor wide = indices->cast(r.getI64Type());
  auto rows = wide.data<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != rows[0] + int64_t(i)) return failure();
  SmallVector<int64_t> starts(shapeOf(op.getInput()).size(), 0), steps(starts.size(), 1), sizes(shapeOf(op.getInput()));
  starts[0] = rows[0];
  sizes[0] = int64_t(rows.size());
  Build b{r, op.getLoc()};
  return r.replaceOp(op, b.reshape(b.slice(op.getInput(), starts, sizes, steps), shapeOf(op))), success();
}

/// Conversions from a type the middle one holds exactly: bool and narrow integers.
LogicalResult foldIntegerCasts(CastOp op, PatternRewriter &r) {
  auto inner = op.getInput().getDefiningOp<CastOp>();
  if (!inner) return failure();
  Type from = elementOf(inner.getInput()), middle = elementOf(inner.getResult());
  bool exact = from.isInteger(1) || (from.isInteger(32) && (middle.isInteger(64) || middle.isF64()));
  if (!exact) return failure();
  if (inner.getInput().getType() == op.getType()) return r.replaceOp(op, inner.getInput()), success();
  return r.replaceOpWithNewOp<CastOp>(op, op.getType(), inner.getInput()), success();
}

/// x and true, x or false, and their opposites.
template <typename Op> LogicalResult foldLogic(Op op, PatternRewriter &r) {
  const bool neutral = std::is_same_v<Op, AndOp>;
  for (int side : {0, 1})
    if (auto number = splatOf(op->getOperand(side)))
      return r.replaceOp(op, op->getOperand(bool(*number) == neutral ? 1 - side : side)), success();
  return failure();
}

LogicalResult foldNot(NotOp op, PatternRewriter &r) {
  auto inner = op.getInput().template getDefiningOp<NotOp>();
  return inner ? (r.replaceOp(op, inner.getInput()), success()) : failure();
}

struct TidyImport : impl::TidyImportPassBase<TidyImport> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateTidyPatterns(patterns);
    if (failed(applyPatterns(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

} // namespace

void populateTidyPatterns(RewritePatternSet &patterns) {
  populateSimplifyPatterns(patterns);
  patterns.add(transposeBeforeReshape).add(transposeOperands).add(gatherToSlice).add(foldIntegerCasts);
  patterns.add(foldLogic<AndOp>).add(foldLogic<OrOp>).add(foldNot);
}

void eraseDead(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op)) op.erase();
}

LogicalResult applyPatterns(func::FuncOp function, RewritePatternSet &&patterns) {
  if (function.isExternal() || function->hasAttr(NnDialect::kKernelAttr)) return success();
  GreedyRewriteConfig config;
  config.useTopDownTraversal = true;
  config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled;
  if (succeeded(applyPatternsAndFoldGreedily(function, std::move(patterns), config))) return success();
  return function.emitError() << "simplification does not come to an end";
}

} // namespace zero::raise

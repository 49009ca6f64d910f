//===- expand_put_along.cpp - nn-expand-put-along -----------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/fuse/Passes.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_EXPANDPUTALONGPASS
#include "passes/fuse/Passes.h.inc"

namespace {

struct ExpandPutAlong : impl::ExpandPutAlongPassBase<ExpandPutAlong> {
  using ExpandPutAlongPassBase::ExpandPutAlongPassBase;

  void runOnOperation() override {
    getOperation().walk([&](PutAlongOp op) {
      OpBuilder builder(op);
      Build b{builder, op.getLoc()};
      int64_t columns = typeOf(op).getShape().back(), each = typeOf(op.getUpdates()).getShape().back(),
              rows = typeOf(op).getNumElements() / columns;
      Value updates = b.reshape(op.getUpdates(), {rows, each}), indices = b.reshape(op.getIndices(), {rows, each});
      Value sums = compare ? bySearch(b, updates, indices, columns) : byScatter(b, updates, indices, columns);
      op.replaceAllUsesWith(b.reshape(sums, typeOf(op).getShape()));
      op.erase();
      ++expanded;
    });
  }

  /// Every column asks all updates of its row whether they are its own.
  Value bySearch(Build &b, Value updates, Value indices, int64_t columns) {
    int64_t rows = typeOf(updates).getDimSize(0), each = typeOf(updates).getDimSize(1);
    indices = b.cast(indices, b.b.getI32Type()); // compared once for each column
    auto all = withShape(updates, {rows, each, columns});
    Value column = b.iota(RankedTensorType::get(all.getShape(), elementOf(indices)), 2);
    Value falls = b.compare(Predicate::eq, b.broadcast(indices, all.getShape(), {0, 1}), column);
    Value mine = b.select(falls, b.broadcast(updates, all.getShape(), {0, 1}), b.splat(all, 0));
    return b.reduce(ReductionKind::sum, mine, {1});
  }

  /// Single elements of the flat tensor are the rows of a table.
  Value byScatter(Build &b, Value updates, Value indices, int64_t columns) {
    int64_t rows = typeOf(updates).getDimSize(0);
    Value flat = b.add(indices, b.mul(b.iota(typeOf(indices), 0), double(columns)));
    return b.b.create<ScatterAddOp>(b.loc, withShape(updates, {rows * columns}), flat, updates);
  }
};

} // namespace
} // namespace zero::fuse

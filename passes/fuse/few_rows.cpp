//===- few_rows.cpp - nn-few-rows -----------------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/access.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_FEWROWSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

struct FewRows : impl::FewRowsPassBase<FewRows> {
  using FewRowsPassBase::FewRowsPassBase;

  void runOnOperation() override {
    getOperation().walk([&](ScatterAddOp scatter) {
      int64_t count = typeOf(scatter).getDimSize(0);
      if (count > rows || elementsOf(scatter.getUpdates()) < least) return;
      sumByRow(scatter, count);
      ++sums;
    });
  }

  /// Of each row, the updates whose index it is and zeros in place of the others, summed over all of them.
  void sumByRow(ScatterAddOp scatter, int64_t count) {
    OpBuilder builder(scatter);
    Build b{builder, scatter.getLoc()};
    Value indices = scatter.getIndices(), updates = scatter.getUpdates();
    ArrayRef<int64_t> shape = typeOf(updates).getShape();
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(indices).getRank()));
    SmallVector<int64_t> one(typeOf(scatter).getShape());
    one[0] = 1;
    SmallVector<Value> sums;
    for (int64_t row = 0; row < count; ++row) {
      Value mine = updates;
      if (count > 1) {
        Value falls = b.broadcast(b.compare(Predicate::eq, indices, b.like(indices, double(row))), shape, dims);
        mine = b.select(falls, updates, b.like(updates, 0));
      }
      sums.push_back(b.reshape(b.reduce(ReductionKind::sum, mine, dims), one));
    }
    Value all = count > 1 ? builder.create<ConcatOp>(b.loc, sums, 0).getResult() : sums[0];
    scatter.replaceAllUsesWith(all);
    scatter.erase();
  }
};

} // namespace
} // namespace zero::fuse

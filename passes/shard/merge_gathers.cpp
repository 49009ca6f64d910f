//===- merge_gathers.cpp - zero-merge-gathers ------------------------------------------------------===//
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/shard/Passes.h"

#define DEBUG_TYPE "zero-merge-gathers"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_MERGEGATHERSPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// The latest gather of a bucket, and its release.
struct Window {
  state::GatherOp gather;
  state::ReleaseOp release;
};

struct MergeGathers : impl::MergeGathersPassBase<MergeGathers> {
  using MergeGathersPassBase::MergeGathersPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(state::ZeroDialect::kRole) && failed(mergeIn(function))) return signalPassFailure();
  }

  LogicalResult mergeIn(func::FuncOp program) {
    RecentUses recent(distance);
    llvm::DenseMap<StringAttr, Window> latest;
    SmallVector<state::GatherOp> gathers(program.getOps<state::GatherOp>());
    for (state::GatherOp gather : gathers) {
      StringAttr bucket = gather.getBucketAttr().getAttr();
      state::ReleaseOp release = releaseOf(gather);
      if (!release) return gather.emitOpError() << "is never released, as zero-insert-movement releases what it gathers";
      Window &window = latest[bucket];
      if (!recent.isNear(bucket)) {
        window = {gather, release};
        continue;
      }
      window.release.erase();
      window.release = release;
      gather.getWhole().replaceAllUsesWith(window.gather.getWhole());
      gather.erase();
      ++merged;
    }
    return success();
  }

  /// Null if there is none.
  static state::ReleaseOp releaseOf(state::GatherOp gather) {
    for (Operation *user : gather.getWhole().getUsers())
      if (auto release = dyn_cast<state::ReleaseOp>(user)) return release;
    return {};
  }
};

} // namespace
} // namespace zero::shard

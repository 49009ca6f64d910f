//===- merge_gathers.cpp - zero-merge-gathers ------------------------------------------------------===//
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/shard/Passes.h"
#include "llvm/ADT/MapVector.h"

#define DEBUG_TYPE "zero-merge-gathers"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_MERGEGATHERSPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// Between two gathers of one bucket, how many other buckets are gathered?
struct Window {
  state::GatherOp gather;
  state::ReleaseOp release;
  llvm::SmallDenseSet<StringAttr> others; // gathered since the release
};

struct MergeGathers : impl::MergeGathersPassBase<MergeGathers> {
  using MergeGathersPassBase::MergeGathersPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(state::ZeroDialect::kRole) && failed(mergeIn(function))) return signalPassFailure();
  }

  LogicalResult mergeIn(func::FuncOp program) {
    llvm::MapVector<StringAttr, Window> open; // the latest window of each bucket, while it may be merged with the next
    SmallVector<state::GatherOp> gathers(program.getOps<state::GatherOp>());
    for (state::GatherOp gather : gathers) {
      StringAttr bucket = gather.getBucketAttr().getAttr();
      state::ReleaseOp release = releaseOf(gather);
      if (!release) return gather.emitOpError() << "is never released, as zero-insert-movement releases what it gathers";
      for (auto &[other, window] : open)
        if (other != bucket) window.others.insert(bucket);
      // So few windows stay that the search does not grow with the number of buckets.
      open.remove_if([&](auto &entry) { return int64_t(entry.second.others.size()) > distance; });
      auto found = open.find(bucket);
      if (found == open.end()) {
        open[bucket] = {gather, release, {}};
        continue;
      }
      Window &window = found->second;
      window.release.erase();
      window.release = release;
      window.others.clear();
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

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
      if (function->hasAttr(state::ZeroDialect::kRole)) mergeIn(function);
  }

  void mergeIn(func::FuncOp program) {
    llvm::DenseMap<StringAttr, Window> open; // the latest window of each bucket
    SmallVector<state::GatherOp> gathers(program.getOps<state::GatherOp>());
    for (state::GatherOp gather : gathers) {
      StringAttr bucket = gather.getBucketAttr().getAttr();
      for (auto &[other, window] : open)
        if (other != bucket) window.others.insert(bucket);
      auto found = open.find(bucket);
      if (found != open.end() && int64_t(found->second.others.size()) <= distance) {
        found->second.release.erase();
        found->second.release = releaseOf(gather);
        found->second.others.clear();
        gather.getWhole().replaceAllUsesWith(found->second.gather.getWhole());
        gather.erase();
        ++merged;
        continue;
      }
      open[bucket] = {gather, releaseOf(gather), {}};
    }
  }

  static state::ReleaseOp releaseOf(state::GatherOp gather) {
    for (Operation *user : gather.getWhole().getUsers())
      if (auto release = dyn_cast<state::ReleaseOp>(user)) return release;
    llvm_unreachable("zero-insert-movement releases what it gathers");
  }
};

} // namespace
} // namespace zero::shard

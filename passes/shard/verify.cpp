//===- verify.cpp - zero-verify-shard --------------------------------------------------------------===//
#include "compiler/nn/Nn.h"
#include "passes/shard/Passes.h"

#define DEBUG_TYPE "zero-verify-shard"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_VERIFYSHARDPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// A gathered copy is released once, behind its last use (views of it included).
LogicalResult checkGather(state::GatherOp gather) {
  state::ReleaseOp release;
  SmallVector<Operation *> users;
  SmallVector<Value> values{gather.getWhole()};
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers()) {
      if (auto r = dyn_cast<state::ReleaseOp>(user)) {
        if (release) return r.emitOpError() << "releases " << gather.getBucketAttr() << " a second time";
        release = r;
      } else {
        users.push_back(user);
        if (isa<state::ViewOp, nn::ReshapeOp>(user)) values.push_back(user->getResult(0));
      }
    }
  if (!release) return gather.emitOpError() << "is never released";
  for (Operation *user : users)
    if (release->isBeforeInBlock(user)) return user->emitOpError() << "uses " << gather.getBucketAttr() << " after its release";
  return success();
}

LogicalResult checkUpdates(func::FuncOp program, ArrayRef<state::BucketOp> buckets) {
  StringRef role = program->getAttrOfType<StringAttr>(state::ZeroDialect::kRole).getValue();
  bool updates = role == "step" || role == "last";
  llvm::DenseMap<StringAttr, state::UpdateOp> seen;
  for (Operation &op : program.getBody().front()) {
    if (auto update = dyn_cast<state::UpdateOp>(op)) {
      if (!seen.insert({update.getBucketAttr().getAttr(), update}).second)
        return op.emitOpError() << "updates " << update.getBucketAttr() << " a second time";
      for (auto resident : program.getOps<state::ResidentOp>())
        if (resident.getBucket() == update.getBucket())
          for (Operation *view : resident.getWhole().getUsers())
            for (Operation *user : view->getUsers())
              if (op.isBeforeInBlock(user)) return user->emitOpError() << "reads " << update.getBucketAttr() << " after its update";
    }
    if (auto gather = dyn_cast<state::GatherOp>(op))
      if (auto update = seen.lookup(gather.getBucketAttr().getAttr()))
        return gather.emitOpError() << "gathers " << gather.getBucketAttr() << " after its update";
  }
  for (state::BucketOp bucket : buckets)
    if (bucket.getTrainable() && updates != seen.contains(bucket.getSymNameAttr()))
      return program.emitError() << "@" << program.getName() << (updates ? " never updates @" : " must not update @")
                                 << bucket.getSymName();
  return success();
}

struct VerifyShard : impl::VerifyShardPassBase<VerifyShard> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<state::BucketOp> buckets(module.getOps<state::BucketOp>());
    for (auto program : module.getOps<func::FuncOp>()) {
      if (!program->hasAttr(state::ZeroDialect::kRole)) continue;
      auto stale = program.walk([](Operation *op) -> WalkResult {
        if (isa<nn::GetOp, nn::GradientOp>(op)) return op->emitOpError() << "must not survive zero-insert-movement";
        if (auto gather = dyn_cast<state::GatherOp>(op)) return checkGather(gather);
        return WalkResult::advance();
      });
      if (stale.wasInterrupted() || failed(checkUpdates(program, buckets))) return signalPassFailure();
    }
  }
};

} // namespace
} // namespace zero::shard

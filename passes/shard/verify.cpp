//===- verify.cpp - zero-verify-shard --------------------------------------------------------------===//
#include "compiler/nn/Nn.h"
#include "passes/shard/Passes.h"

#define DEBUG_TYPE "zero-verify-shard"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_VERIFYSHARDPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// A gathered copy is released once, after its last use (views of it included).
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

/// Each trainable bucket is updated once where the program updates, and never read after that.
LogicalResult checkUpdates(func::FuncOp program, ArrayRef<state::BucketOp> buckets) {
  StringRef role = program->getAttrOfType<StringAttr>(state::ZeroDialect::kRole).getValue();
  bool updates = role == "step" || role == "last";
  llvm::DenseSet<StringAttr> updated;
  llvm::DenseMap<StringAttr, int64_t> ends;   // of what is updated of a bucket
  llvm::DenseMap<Value, StringAttr> contents; // views of a bucket that is whole on every rank
  for (Operation &op : program.getBody().front()) {
    StringAttr viewed;
    for (Value operand : op.getOperands())
      if (StringAttr bucket = contents.lookup(operand)) viewed = bucket;
    if (auto resident = dyn_cast<state::ResidentOp>(op))
      contents[resident.getWhole()] = resident.getBucketAttr().getAttr();
    else if (viewed && isa<state::ViewOp, nn::ReshapeOp>(op))
      contents[op.getResult(0)] = viewed;
    else if (viewed && updated.contains(viewed))
      return op.emitOpError() << "reads @" << viewed.getValue() << " after its update";
    if (auto gather = dyn_cast<state::GatherOp>(op); gather && updated.contains(gather.getBucketAttr().getAttr()))
      return gather.emitOpError() << "gathers " << gather.getBucketAttr() << " after its update";
    if (auto update = dyn_cast<state::UpdateOp>(op)) {
      int64_t &end = ends[update.getBucketAttr().getAttr()];
      if (int64_t(update.getBegin()) < end) return op.emitOpError() << "updates " << update.getBucketAttr() << " a second time";
      if (int64_t(update.getBegin()) > end)
        return op.emitOpError() << "updates " << update.getBucketAttr() << " from element " << int64_t(update.getBegin()) << " on, but "
                                << (end ? "the slice before ends at " + std::to_string(end) : std::string("nothing stands before that"));
      end += update.getGradient().getType().getNumElements();
      updated.insert(update.getBucketAttr().getAttr());
    }
  }
  for (state::BucketOp bucket : buckets)
    if (bucket.getTrainable() && updates != updated.contains(bucket.getSymNameAttr()))
      return program.emitError() << "@" << program.getName() << (updates ? " never updates @" : " must not update @")
                                 << bucket.getSymName();
  llvm::DenseMap<StringAttr, state::BucketOp> named;
  for (state::BucketOp bucket : buckets) named[bucket.getSymNameAttr()] = bucket;
  for (auto update : program.getOps<state::UpdateOp>()) {
    int64_t part = named.lookup(update.getBucketAttr().getAttr()).elementsOf(update.getWhole() ? state::Part::whole : state::Part::shard);
    if (int64_t end = ends[update.getBucketAttr().getAttr()]; end != part)
      return update.emitOpError() << "and its like update " << end << " of the " << part << " elements of " << update.getBucketAttr();
  }
  return success();
}

/// Every parameter has one place of its own.
LogicalResult checkBuckets(ModuleOp module, ArrayRef<state::BucketOp> buckets) {
  SymbolTable symbols(module);
  llvm::DenseSet<Operation *> placed;
  for (state::BucketOp bucket : buckets) {
    int64_t end = 0;
    for (auto [name, offset] : llvm::zip(bucket.getParameters().getAsRange<FlatSymbolRefAttr>(), bucket.getOffsets())) {
      auto parameter = symbols.lookup<nn::ParameterOp>(name.getAttr());
      if (!parameter) return bucket.emitOpError() << "no nn.parameter is called " << name;
      if (!placed.insert(parameter).second) return bucket.emitOpError() << name << " already lies in a bucket";
      if (parameter.getTrainable() != bucket.getTrainable())
        return bucket.emitOpError() << (bucket.getTrainable() ? "trains" : "does not train") << ", unlike its parameter " << name;
      if (offset < end)
        return bucket.emitOpError() << name << " lies at element " << offset << ", inside the parameter that ends at " << end;
      end = offset + cast<ShapedType>(parameter.getType()).getNumElements();
      if (end > int64_t(bucket.getElements()))
        return bucket.emitOpError() << name << " ends at element " << end << " of " << bucket.getElements();
    }
  }
  return success();
}

struct VerifyShard : impl::VerifyShardPassBase<VerifyShard> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<state::BucketOp> buckets(module.getOps<state::BucketOp>());
    if (failed(checkBuckets(module, buckets))) return signalPassFailure();
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

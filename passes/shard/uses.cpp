//===- uses.cpp - what a micro-step does with each bucket -------------------------------------------------===//
#include "passes/shard/uses.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace zero::shard {
namespace {

void collect(nn::GetOp get, Value value, const SmallVector<nn::ReshapeOp> &views, SmallVectorImpl<Read> &reads) {
  for (OpOperand &use : value.getUses())
    if (auto view = dyn_cast<nn::ReshapeOp>(use.getOwner())) {
      auto deeper = views;
      deeper.push_back(view);
      collect(get, view.getResult(), deeper, reads);
    } else {
      reads.push_back({&use, get, views});
    }
}

} // namespace

void collectReads(nn::GetOp get, SmallVectorImpl<Read> &reads) { collect(get, get.getResult(), {}, reads); }

bool RecentUses::isNear(StringAttr bucket) {
  for (auto &[other, since] : recent)
    if (other != bucket) since.insert(bucket);
  // So few stay that the search does not grow with the number of buckets.
  recent.remove_if([&](auto &entry) { return int64_t(entry.second.size()) > distance; });
  bool near = recent.find(bucket) != recent.end();
  recent[bucket].clear();
  return near;
}

FailureOr<llvm::MapVector<StringAttr, Uses>> usesOf(ModuleOp module) {
  auto train = module.lookupSymbol<func::FuncOp>("train");
  if (!train) return module.emitError() << "there is no function @train whose uses of parameters could be counted";
  llvm::MapVector<StringAttr, Uses> uses;
  llvm::DenseMap<StringAttr, StringAttr> bucketOf; // of each parameter
  for (auto bucket : module.getOps<state::BucketOp>()) {
    uses[bucket.getSymNameAttr()];
    for (auto name : bucket.getParameters().getAsRange<FlatSymbolRefAttr>()) bucketOf[name.getAttr()] = bucket.getSymNameAttr();
  }
  SmallVector<Read> reads;
  for (auto get : train.getOps<nn::GetOp>()) collectReads(get, reads);
  llvm::DenseMap<Operation *, SmallVector<StringAttr, 2>> readBy;
  for (Read &read : reads) readBy[read.operand->getOwner()].push_back(bucketOf.lookup(read.get.getParameterAttr().getAttr()));

  RecentUses recent(kMergeDistance);
  int64_t position = 0;
  for (Operation &op : train.getBody().front()) {
    ++position;
    if (auto gradient = dyn_cast<nn::GradientOp>(op)) {
      StringAttr bucket = bucketOf.lookup(gradient.getParameterAttr().getAttr());
      uses[bucket].changed = position;
      uses[bucket].stays = recent.isRecent(bucket);
    }
    for (StringAttr bucket : readBy.lookup(&op))
      if (!recent.isNear(bucket)) ++uses[bucket].visits;
  }
  return uses;
}

} // namespace zero::shard

//===- uses.cpp - what a micro-step does with each bucket -------------------------------------------------===//
#include "passes/shard/uses.h"
#include "compiler/nn/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace zero::shard {
namespace {

/// Operations that compute with a value, or with views of it.
SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers;
  SmallVector<Value> views{value};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers())
      if (isa<nn::ReshapeOp>(user))
        views.push_back(user->getResult(0));
      else
        readers.push_back(user);
  return readers;
}

} // namespace

FailureOr<llvm::MapVector<StringAttr, Uses>> usesOf(ModuleOp module) {
  auto train = module.lookupSymbol<func::FuncOp>("train");
  if (!train) return module.emitError() << "there is no function @train whose uses of parameters could be counted";
  llvm::MapVector<StringAttr, Uses> uses;
  llvm::DenseMap<StringAttr, StringAttr> bucketOf; // of each parameter
  for (auto bucket : module.getOps<state::BucketOp>()) {
    uses[bucket.getSymNameAttr()];
    for (auto name : bucket.getParameters().getAsRange<FlatSymbolRefAttr>()) bucketOf[name.getAttr()] = bucket.getSymNameAttr();
  }
  llvm::DenseMap<Operation *, SmallVector<StringAttr, 2>> read; // buckets, by reader
  for (auto get : train.getOps<nn::GetOp>())
    for (Operation *reader : readersOf(get)) read[reader].push_back(bucketOf.lookup(get.getParameterAttr().getAttr()));

  llvm::MapVector<StringAttr, llvm::SmallDenseSet<StringAttr, 2>> near; // buckets used lately, and what was used since
  int64_t position = 0;
  for (Operation &op : train.getBody().front()) {
    ++position;
    if (auto gradient = dyn_cast<nn::GradientOp>(op)) uses[bucketOf.lookup(gradient.getParameterAttr().getAttr())].changed = position;
    for (StringAttr bucket : read.lookup(&op)) {
      for (auto &[other, since] : near)
        if (other != bucket) since.insert(bucket);
      near.remove_if([](auto &entry) { return int64_t(entry.second.size()) > kMergeDistance; });
      if (near.find(bucket) == near.end()) ++uses[bucket].visits;
      near[bucket].clear();
    }
  }
  return uses;
}

} // namespace zero::shard

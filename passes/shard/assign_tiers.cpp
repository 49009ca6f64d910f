//===- assign_tiers.cpp - zero-assign-tiers ---------------------------------------------------------===//
#include "passes/shard/Passes.h"
#include "passes/shard/tier_knapsack.h"
#include "passes/shard/uses.h"
#include <limits>

#define DEBUG_TYPE "zero-assign-tiers"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_ASSIGNTIERSPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// What a flag says of the tier; none: it is to be chosen.
FailureOr<std::optional<state::Tier>> given(ModuleOp module, StringRef home) {
  if (home == "auto") return std::optional<state::Tier>();
  if (home == "none") return std::optional(state::Tier::device);
  auto tier = state::symbolizeTier(home);
  if (tier && tier != state::Tier::device) return tier;
  return module.emitError() << "state rests on none (the device), host or disk, or where there is room (auto), not on " << home;
}

/// How often an optimizer step of `micro` programs copies a tensor that does not rest on the device.
int64_t copiesOf(state::BucketOp bucket, state::Role role, int64_t micro, const Uses &uses) {
  if (role == bucket.readRole()) return uses.visits * micro + bucket.getTrainable(); // read by forward and backward, written by the update
  if (role == state::Role::gradient) return 2 * (micro - 1);                         // written by the first micro-step, read by the last
  return bucket.getTrainable() ? 2 : 0;                                              // read and written by the update
}

/// What the host holds beside a tensor that only updates touch, if it updates the bucket: an equal part of the gradient, and of the master
/// that joins the moments where programs read it as it is.
int64_t besideOnHost(state::BucketOp bucket, state::TensorAttr tensor) {
  if (!bucket.getTrainable() || tensor.getRole() == bucket.readRole() || tensor.getRole() == state::Role::gradient) return 0;
  bool joins = bucket.readRole() == state::Role::master;
  int64_t others = 0; // tensors of this kind
  for (auto other : bucket.getTensors().getAsRange<state::TensorAttr>())
    others += state::isMoment(other.getRole()) || (other.getRole() == state::Role::master && !joins);
  constexpr int64_t element = sizeof(float);
  return llvm::divideCeil(bucket.elementsOf(tensor.getPart()) * element * (joins ? 2 : 1), others);
}

struct AssignTiers : impl::AssignTiersPassBase<AssignTiers> {
  using AssignTiersPassBase::AssignTiersPassBase;

  struct Choice {
    state::BucketOp bucket;
    size_t tensor;
    std::pair<bool, int64_t> order; // whether programs read it, and when its bucket's gradient is complete
    Movable movable;
  };

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto params = given(module, offloadParams), moments = given(module, offloadOptimizer);
    if (failed(params) || failed(moments)) return signalPassFailure();
    auto accumulate = module->getAttrOfType<IntegerAttr>(state::ZeroDialect::kAccumulate);
    if (!accumulate) {
      module.emitError() << "is not partitioned; run zero-partition first";
      return signalPassFailure();
    }
    int64_t micro = module->hasAttr(state::ZeroDialect::kVertical) ? 1 : accumulate.getInt();
    llvm::MapVector<StringAttr, Uses> uses;
    if (!*params || !*moments || fetchMasters) {
      auto found = usesOf(module);
      if (failed(found)) return signalPassFailure();
      uses = std::move(*found);
    }
    SmallVector<Choice> choices;
    for (auto bucket : module.getOps<state::BucketOp>())
      for (auto [i, tensor] : llvm::enumerate(bucket.getTensors().getAsRange<state::TensorAttr>())) {
        auto tier = tensor.getRole() == bucket.readRole() ? *params : *moments;
        if (tier) {
          set(bucket, i, *tier);
          continue;
        }
        int64_t bytes = bucket.bytesOf(tensor);
        const Uses &use = uses[bucket.getSymNameAttr()];
        choices.push_back(
            {bucket,
             i,
             {tensor.getRole() == bucket.readRole(), use.changed},
             {bytes, bytes * copiesOf(bucket, tensor.getRole(), micro, use), hostUpdates ? besideOnHost(bucket, tensor) : 0}});
      }
    // Of what is copied equally often, parameters stay, which would need room on the device a second time while they are used; and what
    // backward completes last: copies of the others hide behind the rest of it.
    llvm::stable_sort(choices, [](const Choice &a, const Choice &b) { return a.order > b.order; });
    if (spread) spreadMoments(choices);
    std::vector<Movable> things = movables(choices, uses, micro);
    if (!things.empty()) {
      SmallVector<int64_t> flat;
      for (const Removal &removal : removalsOf(things)) flat.append({removal.bytes, removal.traffic});
      module->setAttr(state::ZeroDialect::kRemovals, DenseI64ArrayAttr::get(&getContext(), flat));
    }
    constexpr int64_t all = std::numeric_limits<int64_t>::max();
    auto tiers = chooseTiers(things, {deviceBytes < 0 ? all : deviceBytes, hostBytes});
    for (auto [choice, tier] : llvm::zip(choices, tiers)) set(choice.bucket, choice.tensor, tier);
    for (auto bucket : module.getOps<state::BucketOp>()) {
      if (hostUpdates) updateOnHost(bucket);
      if (!keepCompute && bucket.tensorOf(state::Role::compute) && bucket.isResident(state::Role::master)) dropCompute(bucket);
      if (restTogether(bucket) && sparedWithoutCopy(bucket, micro, uses[bucket.getSymNameAttr()]) > 0) dropCompute(bucket);
    }
  }

  /// What the algorithm has to know of each choice. A master that drops its compute copy where it rests on the device counts for that, too:
  /// for a copy that is a choice itself it `replaces` that; otherwise it is smaller by the copy's bytes, or costs its traffic elsewhere.
  std::vector<Movable> movables(ArrayRef<Choice> choices, llvm::MapVector<StringAttr, Uses> &uses, int64_t micro) {
    std::vector<Movable> things;
    llvm::SmallDenseMap<Operation *, size_t> copies; // compute copies among the choices
    for (auto [i, choice] : llvm::enumerate(choices)) {
      things.push_back(choice.movable);
      if (choice.order.first) copies[choice.bucket] = i;
    }
    for (auto [thing, choice] : llvm::zip(things, choices)) {
      state::TensorAttr copy = copyBeside(choice);
      if (!copy) continue;
      state::BucketOp bucket = choice.bucket;
      const Uses &use = uses[bucket.getSymNameAttr()];
      int64_t spared = std::max<int64_t>(0, sparedWithoutCopy(bucket, micro, use)); // where neither rests on the device
      if (auto found = copies.find(bucket); found != copies.end())
        thing.replaces = found->second, things[found->second].traffic -= spared;
      else if (copy.getTier() == state::Tier::device)
        thing.bytes -= bucket.bytesOf(copy);
      else
        thing.traffic += bucket.bytesOf(copy) * copiesOf(bucket, copy.getRole(), micro, use) - spared;
    }
    return things;
  }

  /// Bytes that a step copies less if a master away from the device has no compute copy, but comes for each use and stays for the update.
  int64_t sparedWithoutCopy(state::BucketOp bucket, int64_t micro, const Uses &use) {
    state::TensorAttr master = bucket.tensorOf(state::Role::master), copy = bucket.tensorOf(state::Role::compute);
    if (!fetchMasters || hostUpdates || keepCompute || !master || !copy || bucket.isSharded(state::Role::master)) return 0;
    int64_t uses = copiesOf(bucket, copy.getRole(), micro, use), updates = copiesOf(bucket, master.getRole(), micro, use);
    int64_t without = uses + (bucket.getTrainable() && !use.stays); // fetched for its update as well
    return uses * bucket.bytesOf(copy) + (updates - without) * bucket.bytesOf(master);
  }

  /// Master and compute copy, away from the device.
  static bool restTogether(state::BucketOp bucket) {
    state::TensorAttr master = bucket.tensorOf(state::Role::master), copy = bucket.tensorOf(state::Role::compute);
    return master && copy && master.getTier() == copy.getTier() && master.getTier() != state::Tier::device;
  }

  /// What leaves comes from all of backward, in place of its beginning.
  static void spreadMoments(SmallVector<Choice> &choices) {
    auto first = llvm::find_if(choices, [](const Choice &choice) { return !choice.order.first; });
    SmallVector<Choice> moments(first, choices.end());
    for (auto [to, from] : llvm::enumerate(spreadOrder(moments.size()))) first[ptrdiff_t(to)] = moments[from];
  }

  /// The compute copy that is dropped where this tensor rests on the device, if it is such a master (`dropCompute`). Where the host may
  /// update buckets masters are chosen like moments, without regard to it: one on the device would keep its update there.
  state::TensorAttr copyBeside(const Choice &choice) {
    state::BucketOp bucket = choice.bucket;
    auto tensor = cast<state::TensorAttr>(bucket.getTensors()[choice.tensor]);
    bool whole = tensor.getRole() == state::Role::master && !bucket.isSharded(state::Role::master);
    return whole && !hostUpdates && !keepCompute ? bucket.tensorOf(state::Role::compute) : state::TensorAttr();
  }

  /// If nothing that the optimizer keeps beside the parameters rests on the device, and masters need not either. One that programs read
  /// there goes where the moments are if that is the host. A disk would have half as much again to read and to write: there it stays, and
  /// comes to each update and returns.
  void updateOnHost(state::BucketOp bucket) {
    SmallVector<state::TensorAttr> moments;
    for (auto tensor : bucket.getTensors().getAsRange<state::TensorAttr>())
      if (state::isMoment(tensor.getRole())) moments.push_back(tensor);
    auto onHost = [](state::TensorAttr tensor) { return tensor.getTier() == state::Tier::host; };
    auto away = [&](state::TensorAttr tensor) { return onHost(tensor) || (diskUpdates && tensor.getTier() == state::Tier::disk); };
    if (!bucket.getTrainable() || moments.empty() || !llvm::all_of(moments, away)) return;
    state::TensorAttr master = bucket.tensorOf(state::Role::master), read = bucket.tensorOf(bucket.readRole());
    if (read.getTier() == state::Tier::disk && !diskUpdates) return;
    if (read == master && read.getTier() == state::Tier::device) {
      if (llvm::all_of(moments, onHost)) partMaster(bucket, moments.front());
    } else if (!away(master)) {
      return;
    }
    bucket.setUpdatedOnHost(true);
    ++onHosts;
  }

  /// The master goes where the moments are, and what programs read of it on the device becomes a compute copy.
  void partMaster(state::BucketOp bucket, state::TensorAttr moment) {
    SmallVector<Attribute> tensors;
    for (auto tensor : bucket.getTensors().getAsRange<state::TensorAttr>())
      if (tensor.getRole() == state::Role::master) {
        auto as = [&](state::Role role, state::Part part, state::Tier tier) {
          return state::TensorAttr::get(&getContext(), role, tensor.getType(), part, tier);
        };
        tensors.push_back(as(state::Role::master, moment.getPart(), moment.getTier()));
        tensors.push_back(as(state::Role::compute, tensor.getPart(), tensor.getTier()));
      } else {
        tensors.push_back(tensor);
      }
    bucket.setTensorsAttr(ArrayAttr::get(&getContext(), tensors));
    ++moved;
  }

  /// The master is rounded around its uses: a copy would take memory, or be copied, for what most of a step has no use for.
  void dropCompute(state::BucketOp bucket) {
    SmallVector<Attribute> tensors(bucket.getTensors().getValue());
    llvm::erase_if(tensors, [](Attribute tensor) { return cast<state::TensorAttr>(tensor).getRole() == state::Role::compute; });
    bucket.setTensorsAttr(ArrayAttr::get(&getContext(), tensors));
    ++rounded;
  }

  void set(state::BucketOp bucket, size_t index, state::Tier tier) {
    SmallVector<Attribute> tensors(bucket.getTensors().getValue());
    auto tensor = cast<state::TensorAttr>(tensors[index]);
    tensors[index] = state::TensorAttr::get(&getContext(), tensor.getRole(), tensor.getType(), tensor.getPart(), tier);
    bucket.setTensorsAttr(ArrayAttr::get(&getContext(), tensors));
    if (tier != state::Tier::device) ++moved;
  }
};

} // namespace
} // namespace zero::shard

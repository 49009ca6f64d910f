//===- storage.cpp - slots, views and uses of a program's tensors -----------------------------------===//
#include "passes/schedule/storage.h"

using namespace mlir;
using zero::planir::BufferKind;

namespace zero::schedule {

FlatSymbolRefAttr bucketOf(Value gradient) {
  for (Operation *user : gradient.getUsers()) {
    if (auto update = dyn_cast<state::UpdateOp>(user); update && update.getGradient() == gradient) return update.getBucketAttr();
    if (auto accumulate = dyn_cast<state::AccumulateOp>(user)) return accumulate.getBucketAttr();
    if (auto add = dyn_cast<state::AddRowsOp>(user); add && add.getShard() == gradient) return add.getBucketAttr();
    if (isa<state::ReduceScatterOp, state::AllGatherOp, state::ToHostOp, state::ViewOp>(user)) // a view: of what is updated in slices
      if (FlatSymbolRefAttr bucket = bucketOf(user->getResult(0))) return bucket;
  }
  return nullptr;
}

StringRef bucketNameOf(Value gradient) {
  FlatSymbolRefAttr bucket = bucketOf(gradient);
  return bucket ? bucket.getValue() : "";
}

/// What people will call a value.
static std::string describe(Value value) {
  Operation *op = value.getDefiningOp();
  if (FlatSymbolRefAttr bucket = bucketOf(value)) return bucket.getValue().str() + ".gradient";
  if (auto gather = dyn_cast<state::GatherOp>(op)) return gather.getBucket().str() + ".gathered";
  if (auto update = dyn_cast<state::UpdateOp>(op)) return update.getBucket().str() + ".squares";
  std::string name = planir::nameOf(op->getLoc());
  if (name.empty()) name = isa<nn::LaunchOp>(op) ? cast<nn::LaunchOp>(op).getKernel().str() : op->getName().stripDialect().str();
  unsigned index = cast<OpResult>(value).getResultNumber();
  return index ? name + "#" + std::to_string(index) : name;
}

Slot *Storage::make(std::string name, BufferKind kind, int64_t bytes) {
  slots.push_back({std::move(name), kind, bytes, nullptr, -1, {}, {}, {}});
  return &slots.back();
}
Slot *Storage::makeFor(Value value, BufferKind kind) {
  Slot *slot = make(describe(value), kind, bytesOf(value));
  if (auto update = value.getDefiningOp<state::UpdateOp>()) slot->bucket = update.getBucketAttr();
  return slot;
}
Slot *Storage::makeFor(Value value, BufferKind kind, FlatSymbolRefAttr bucket, state::Role role, state::Part part) {
  Slot *slot = makeFor(value, kind);
  Type type = cast<ShapedType>(value.getType()).getElementType();
  slot->bucket = bucket;
  if (bucket) slot->tensor = state::TensorAttr::get(value.getContext(), role, type, part, state::Tier::device);
  return slot;
}
Slot *Storage::scratch(std::string name, BufferKind kind, int64_t bytes, FlatSymbolRefAttr bucket) {
  Slot *slot = make(std::move(name), kind, bytes);
  slot->bucket = bucket;
  return slot;
}

Slot *Storage::sumOf(state::AccumulateOp op) {
  auto bucket = states.bucket(op.getBucketAttr());
  planir::StateOp state = states.tensor(bucket, state::Role::gradient);
  bool onHost = op.getShard().getDefiningOp<state::ToHostOp>() && planir::tierOf(state) == state::Tier::host;
  if (onHost || planir::tierOf(state) == state::Tier::device) return persistent(state);
  Slot *&slot = sums[op];
  if (!slot) {
    slot = makeFor(op.getSum(), BufferKind::fetched, op.getBucketAttr(), state::Role::gradient, state.getTensor()->getPart());
    slot->bytes = int64_t(state.getBytes());
  }
  return slot;
}

Slot *Storage::persistent(planir::StateOp state) {
  Slot *&slot = persistentSlots[state];
  if (!slot) {
    slot = make(state.getSymName().str(), state.getKind(), state.getBytes());
    slot->state = state;
  }
  return slot;
}

void Storage::put(Value value, Place place) {
  places[value] = place;
  place.slot->lastUse = std::max(place.slot->lastUse, lastUse.lookup(value));
}

bool Storage::diesAt(const Slot &slot, int64_t position) const {
  return !slot.state && slot.kind != BufferKind::gathered && slot.kind != BufferKind::fetched && slot.lastUse <= position;
}

Storage::View Storage::viewOf(Value value) const {
  auto found = views.find(value);
  return found == views.end() ? View{value} : found->second;
}

Place Storage::placeOf(Value value) const {
  View view = viewOf(value);
  Place place = places.lookup(view.root);
  place.offset += view.offset;
  place.stride += view.stride;
  return place;
}

planir::Ref Storage::refOf(Value value) const {
  Place place = placeOf(value);
  return {place.slot->value, place.offset, place.stride, bytesOf(value)};
}

void Storage::findUses() {
  int64_t index = 0;
  for (Operation &op : program.getBody().front()) {
    position[&op] = index;
    if (isView(&op)) {
      View view = viewOf(op.getOperand(0));
      if (auto rows = dyn_cast<nn::RowsOp>(op))
        view.offset += int64_t(rows.getFrom()) * bytesOf(rows.getResult()) / rows.getType().getDimSize(0);
      if (auto part = dyn_cast<state::ViewOp>(op)) view.offset += part.getOffset() * elementBytes(part.getWhole());
      if (auto shard = dyn_cast<state::OwnShardOp>(op)) view.stride += bytesOf(shard.getShard());
      views[op.getResult(0)] = view;
    } else if (!isa<state::ReleaseOp>(op)) {
      for (Value operand : op.getOperands()) lastUse[viewOf(operand).root] = index;
    }
    if (isa<state::ReduceScatterOp>(op)) scatters.push_back(index);
    ++index;
  }
}

} // namespace zero::schedule

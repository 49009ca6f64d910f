//===- lower_state.cpp - steps that work on model state, wherever it rests -------------------------------===//
#include "passes/schedule/lowering.h"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {

Ref Lowering::roomFor(StateOp state, Ref home, state::Tier memory, StringRef what) {
  Slot *slot = storage.scratch((state.getSymName() + "." + what).str(), BufferKind::fetched, home.bytes, state.getBucketAttr());
  slot->tensor = *state.getTensor();
  if (home.stride) // this rank's shard of it
    slot->tensor =
        state::TensorAttr::get(b.getContext(), slot->tensor.getRole(), slot->tensor.getType(), state::Part::shard, slot->tensor.getTier());
  slot->begin = home.offset * 8 / slot->tensor.getType().getIntOrFloatBitWidth();
  slot->tier = memory;
  return {use(slot), 0, 0, home.bytes};
}

Lowering::Reached Lowering::fetched(Operation *op, StateOp state, Ref home, state::Tier memory) {
  if (tierOf(state) == memory) return {state, home, home};
  Ref here = roomFor(state, home, memory, "fetched");
  copy(named(op, state.getSymName(), "fetch"), home, here);
  return {state, home, here};
}

Lowering::Reached Lowering::overwritten(Operation *op, StateOp state, Ref home, state::Tier memory) {
  if (tierOf(state) == memory) return {state, home, home};
  Ref here = roomFor(state, home, memory, memory == state::Tier::host ? "updated" : "fetched");
  int64_t end = states.bucket(state.getBucketAttr()).bytesOf(*state.getTensor()) - home.offset;
  if (end < home.bytes) // up to a whole block of the disk
    make<FillStep>(named(op, state.getSymName(), "padding"), {}, {{here.buffer, end, 0, home.bytes - end}}, 0);
  return {state, home, here};
}

void Lowering::evict(Operation *op, const Reached &reached) {
  StateOp state = reached.state;
  copy(named(op, state.getSymName(), tierOf(state) == state::Tier::device ? "bring" : "evict"), reached.here, reached.home);
}

Ref Lowering::own(Ref ref, StateOp state, bool all) {
  ref.bytes = states.bucket(state.getBucketAttr()).bytesOf(*state.getTensor());
  if (all || state.getTensor()->getPart() == state::Part::shard || states.world == 1) return ref;
  ref.bytes /= states.world;
  ref.stride = ref.bytes;
  return ref;
}

void Lowering::lowerAccumulate(state::AccumulateOp op) {
  Location loc = named(op, op.getBucket(), "accumulate");
  if (Value onto = op.getOnto()) {
    copy(loc, at(onto), at(op.getSum()));
    make<LaunchStep>(loc, {at(op.getSum()), at(op.getShard())}, {at(op.getSum())}, *op.getKernel());
    return;
  }
  StateOp accumulator = states.tensor(states.bucket(op.getBucketAttr()), state::Role::gradient);
  Ref shard = at(op.getShard()), sum = at(op.getSum());
  Reached reached{accumulator, whole(accumulator), {sum.buffer, sum.offset, 0, int64_t(accumulator.getBytes())}};
  bool elsewhere = reached.home != reached.here;
  if (op.getFirst()) {
    copy(loc, shard, sum);
    int64_t padding = reached.here.bytes - sum.bytes; // up to a whole block of the disk
    if (elsewhere && padding)
      make<FillStep>(named(op, op.getBucket(), "padding"), {}, {{sum.buffer, sum.offset + sum.bytes, 0, padding}}, 0);
  } else {
    if (elsewhere) copy(named(op, accumulator.getSymName(), "fetch"), reached.home, reached.here);
    make<LaunchStep>(loc, {sum, shard}, {sum}, *op.getKernel());
  }
  if (op.getSum().use_empty()) evict(op, reached); // else it is consumed here, and the next step begins anew
}

/// Of a table of `rows` rows of `row` elements, of which the window begins with element `begin`.
static TableRowsAttr rowsOf(Value indices, int64_t rows, int64_t row, int64_t size, int64_t begin) {
  return TableRowsAttr::get(indices.getContext(), elementOf(indices), rows, row * size, begin * size);
}

/// What an update reads and writes. The device updates in its memory, the host in its own: what rests elsewhere comes there and returns.
struct Lowering::StateUpdate {
  StateUpdate(Lowering &lowering, state::UpdateOp op)
      : lowering(lowering), op(op), bucket(lowering.states.bucket(op.getBucketAttr())), onHost(bucket.getUpdatedOnHost()),
        published(bucket.isPublished()), count(op.getGradient().getType().getNumElements()),
        elements(bucket.elementsOf(op.getWhole() ? state::Part::whole : state::Part::shard)), isSlice(count != elements) {}

  void add(state::Role role, bool isRead);
  void addCompute(state::TensorAttr compute);
  TableRowsAttr addApart();

  Lowering &lowering;
  state::UpdateOp op;
  state::BucketOp bucket;
  bool onHost, published;
  int64_t count, elements;
  bool isSlice;
  SmallVector<Reached> reached; // to go home afterwards
  SmallVector<Ref> in, out;
  std::optional<Reached> joined; // by the other ranks' shards

private:
  Ref homeOf(StateOp state, bool isRead);
};

/// Bytes of a state that come and return at once: of a disk all of the last block, and all of the state where ranks have it whole.
Ref Lowering::StateUpdate::homeOf(StateOp state, bool isRead) {
  Ref home = lowering.whole(state);
  bool noDisk = tierOf(state) == state::Tier::device || (published && !isRead); // reaches it from the device, if at all
  if (!isSlice) return onHost && noDisk ? lowering.own(home, state, op.getWhole()) : home;
  int64_t element = state.getTensor()->getType().getIntOrFloatBitWidth() / 8, begin = int64_t(op.getBegin()) * element;
  Ref part = lowering.own(home, state, op.getWhole());
  if (!part.stride) part.bytes = home.bytes; // to the end of its last block
  bool last = begin + count * element == elements * element;
  return Ref{part.buffer, part.offset + begin, part.stride, last ? part.bytes - begin : count * element};
}

void Lowering::StateUpdate::add(state::Role role, bool isRead) {
  state::Tier memory = onHost ? state::Tier::host : state::Tier::device;
  StateOp state = lowering.states.tensor(bucket, role);
  Ref home = homeOf(state, isRead);
  Reached tensor = isRead ? lowering.fetched(op, state, home, memory) : lowering.overwritten(op, state, home, memory);
  Ref part = tensor.here;
  if (isSlice)
    part.bytes = count * (state.getTensor()->getType().getIntOrFloatBitWidth() / 8);
  else if (bucket.bytesOf(*state.getTensor()) <= home.bytes) // all of the state, not this rank's shard alone
    part = lowering.own(tensor.here, state, op.getWhole());
  if (isRead) in.push_back(part);
  out.push_back(part);
  if (!published || role != bucket.readRole())
    reached.push_back(tensor);
  else
    joined = onHost ? Reached{state, {}, part} : isSlice ? Reached{state, lowering.whole(state), lowering.whole(state)} : tensor;
}

/// What programs read goes home, too: the copy that the update has made, or the master itself where that has the same numbers.
void Lowering::StateUpdate::addCompute(state::TensorAttr compute) {
  StateOp state = lowering.states.tensor(bucket, state::Role::compute);
  if (compute.getType() != bucket.tensorOf(state::Role::master).getType())
    add(state::Role::compute, false);
  else if (published)
    joined = Reached{state, {}, out[0]};
  else
    reached.push_back({state, homeOf(state, false), out[0]});
}

/// Rows of a table that are set apart before they are updated; null if none are.
TableRowsAttr Lowering::StateUpdate::addApart() {
  Value room = op.getApart();
  if (!room) return {};
  in.append({lowering.at(op.getIndices()), lowering.at(room)});
  out.append({lowering.at(room), lowering.at(op.getGradient())});
  return rowsOf(op.getIndices(), op.getTableRows(), op.getRow(), elementBytes(op.getGradient()), op.getTableBegin() + op.getBegin());
}

/// Other ranks' shards join what was updated on the device.
void Lowering::lowerUpdate(state::UpdateOp op) {
  StateUpdate update(*this, op);
  update.add(state::Role::master, true);
  update.in.push_back(at(op.getGradient()));
  for (auto tensor : update.bucket.getTensors().getAsRange<state::TensorAttr>())
    if (state::isMoment(tensor.getRole())) update.add(tensor.getRole(), true);
  if (state::TensorAttr compute = update.bucket.tensorOf(state::Role::compute)) update.addCompute(compute);
  update.in.push_back(at(op.getHyper()));
  if (op.getNorm2()) update.in.push_back(at(op.getNorm2()));
  if (op.getSums()) update.out.push_back(at(op.getSums()));
  TableRowsAttr apart = update.addApart();
  make<UpdateStep>(named(op, op.getBucket(), "update"), update.in, update.out, op.getBucket(), op.getKernel(), elementOf(op.getGradient()),
                   op.getWhole(), op.getBegin(), apart);
  for (const Reached &tensor : update.reached) evict(op, tensor);
  std::optional<Reached> joined = update.joined;
  if (!joined) return;
  if (update.onHost) {
    Ref made = joined->here;
    joined = overwritten(op, joined->state, whole(joined->state), state::Tier::device);
    copy(named(op, joined->state.getSymName(), "bring"), made, own(joined->here, joined->state, op.getWhole()));
  }
  updated[update.bucket] = *joined;
}

void Lowering::lowerUpdateRows(state::UpdateRowsOp op) {
  Ref room = at(op.getRoom()), gradient = at(op.getGradient());
  SmallVector<Ref> in;
  for (int64_t begin = 0; begin + gradient.bytes < room.bytes; begin += gradient.bytes) // the last is the gradient so far
    in.push_back({room.buffer, room.offset + begin, room.stride, gradient.bytes});
  in.insert(in.begin() + 1, gradient);
  // The next step has other indices while rows are still on their way.
  Ref given = at(op.getIndices());
  std::string name = nameOf(op->getLoc()) + ".indices";
  Ref kept{use(storage.scratch(name, BufferKind::scalar, given.bytes, nullptr)), 0, 0, given.bytes};
  copy(named(op, nameOf(op->getLoc()), "indices"), given, kept);
  indicesOfRows[op.getIndices()] = kept;
  in.append({at(op.getHyper()), kept});
  auto row = cast<ShapedType>(op.getGradient().getType()).getDimSize(1);
  make<UpdateRowsStep>(op.getLoc(), in, at(op.getChanged()), op.getBuckets(), op.getBegins(), op.getKernel(), elementOf(op.getIndices()),
                       row);
}

void Lowering::lowerWriteRows(state::WriteRowsOp op) {
  StateOp state = states.tensor(states.bucket(op.getBucketAttr()), op.getRole());
  auto type = cast<ShapedType>(op.getRows().getType());
  Ref rows = at(op.getRows()), indices = indicesOfRows.lookup(op.getIndices()), table = whole(state);
  table.bytes = int64_t(op.getElements()) * elementBytes(op.getRows()); // without what fills up the bucket
  make<WriteRowsStep>(named(op, state.getSymName(), "rows"), {rows, indices, table}, {table},
                      rowsOf(op.getIndices(), op.getTableRows(), type.getDimSize(1), elementBytes(op.getRows()), op.getBegin()));
}

void Lowering::lowerPublish(state::PublishOp op) {
  auto bucket = states.bucket(op.getBucketAttr());
  Reached parameter = updated.lookup(bucket);
  allGather(named(op, op.getBucket(), "publish"), own(parameter.here, parameter.state, false), own(parameter.here, parameter.state, true),
            bucket.getShard(), parameter.state.getTensor()->getType());
  evict(op, parameter);
}

void Lowering::lowerGather(state::GatherOp op) {
  auto bucket = states.bucket(op.getBucketAttr());
  StateOp parameter = states.tensor(bucket, bucket.readRole());
  Ref to = at(op.getWhole());
  if (op.getKernelAttr()) {
    make<LaunchStep>(named(op, op.getBucket(), "round"), {own(fetched(op, parameter).here, parameter, /*all=*/true)}, {to},
                     *op.getKernel());
  } else if (bucket.isSharded(bucket.readRole())) {
    allGather(named(op, op.getBucket(), "gather"), own(fetched(op, parameter).here, parameter, false), to, bucket.getShard(),
              parameter.getTensor()->getType());
  } else {
    to.bytes = int64_t(parameter.getBytes());
    copy(named(op, parameter.getSymName(), "fetch"), whole(parameter), to);
  }
}

void Lowering::lowerLookUp(state::LookUpOp op) {
  auto bucket = states.bucket(op.getBucketAttr());
  StateOp parameter = states.tensor(bucket, bucket.readRole());
  make<LaunchStep>(op.getLoc(), {own(fetched(op, parameter).here, parameter, false), at(op.getRank()), at(op.getIndices())},
                   {at(op.getRows())}, op.getKernel());
}

void Lowering::lowerAddRows(state::AddRowsOp op) {
  Ref sum = at(op.getSum());
  copy(op.getLoc(), at(op.getShard()), sum);
  make<LaunchStep>(op.getLoc(), {sum, at(op.getRank()), at(op.getIndices()), at(op.getRows())}, {sum}, op.getKernel());
}

} // namespace zero::schedule

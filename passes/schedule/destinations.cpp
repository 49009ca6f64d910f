//===- destinations.cpp - where each operation writes its results ------------------------------------===//
#include "passes/schedule/storage.h"

using namespace mlir;
using zero::planir::BufferKind;

namespace zero::schedule {

/// Whether the operation can be told where to write its results.
static bool takesDestination(Operation *op) {
  return op && isa<nn::LaunchOp, nn::MatMulOp, nn::MatMulEpilogueOp, nn::BlockMatMulOp, nn::BlockMatMulSumOp, nn::AttentionOp,
                   nn::AttentionGradOp, state::UpdateOp, state::UpdateRowsOp>(op);
}

/// Which operands of a step that may overwrite them `value` can take the place of.
FailureOr<SmallVector<unsigned>> Storage::overwritable(Value value) {
  SmallVector<unsigned> found;
  if (auto product = value.getDefiningOp<nn::MatMulOp>(); product && product.getOnto()) found.push_back(2);
  if (auto blocks = value.getDefiningOp<nn::BlockMatMulOp>(); blocks && blocks.getOnto()) found.push_back(3);
  auto launch = value.getDefiningOp<nn::LaunchOp>();
  if (!launch) return found;
  auto pairs = states.inplace(launch.getKernelAttr());
  if (failed(pairs)) return failure();
  for (auto [result, index] : **pairs)
    if (result == cast<OpResult>(value).getResultNumber()) found.push_back(unsigned(index));
  return found;
}

/// If a kernel may overwrite an operand with `value`, or a product is made onto one, and the operand dies there, the operand is computed in
/// the value's place as well. Only where it is most of the slot, which lives on from the operand's producer.
LogicalResult Storage::placeOverwritten(Value value) {
  Place place = places.lookup(value);
  while (Operation *op = value.getDefiningOp()) {
    auto operands = overwritable(value);
    if (failed(operands)) return failure();
    Value overwritten;
    for (unsigned index : *operands) {
      Value root = viewOf(op->getOperand(index)).root;
      bool alone = llvm::count_if(op->getOperands(), [&](Value other) { return viewOf(other).root == root; }) == 1;
      if (!overwritten && alone && !isPlaced(root) && takesDestination(root.getDefiningOp()) && bytesOf(root) == bytesOf(value) &&
          lastUse.lookup(root) == position[op] && 2 * bytesOf(root) >= place.slot->bytes)
        overwritten = root;
    }
    if (!overwritten) break;
    put(overwritten, place);
    value = overwritten;
  }
  return success();
}

LogicalResult Storage::placePack(state::PackOp pack) {
  FlatSymbolRefAttr bucket = bucketOf(pack.getResult());
  Slot *slot = nullptr;
  // The first micro-step on one rank: the gradients are the accumulator.
  if (pack->hasOneUse())
    if (auto accumulate = dyn_cast<state::AccumulateOp>(*pack->user_begin()); accumulate && accumulate.getFirst()) slot = sumOf(accumulate);
  if (!slot && bucket) {
    bool shard = pack.getType().getNumElements() != int64_t(states.bucket(bucket).getElements()); // rows of a table are added to zeros
    slot = makeFor(pack.getResult(), BufferKind::gradient, bucket, state::Role::gradient, shard ? state::Part::shard : state::Part::whole);
  }
  if (!slot) slot = makeFor(pack.getResult(), BufferKind::scalar);
  put(pack.getResult(), {slot});
  for (auto [i, input, offset] : llvm::enumerate(pack.getInputs(), pack.getOffsets())) {
    View view = viewOf(input);
    bool whole = !view.offset && !view.stride && bytesOf(view.root) == bytesOf(input);
    if (whole && takesDestination(view.root.getDefiningOp()) && !isPlaced(view.root)) {
      put(view.root, {slot, offset * elementBytes(pack.getResult())});
      if (failed(placeOverwritten(view.root))) return failure();
    } else {
      copied.insert({pack, i});
    }
  }
  return success();
}

/// Whoever computes a part writes it where it belongs.
LogicalResult Storage::placeJoin(nn::JoinRowsOp join) {
  if (isPlaced(join)) return success();
  Slot *slot = makeFor(join, BufferKind::activation);
  put(join, {slot});
  int64_t offset = 0;
  for (auto [i, input] : llvm::enumerate(join.getInputs())) {
    View view = viewOf(input);
    bool whole = !view.offset && !view.stride && bytesOf(view.root) == bytesOf(input);
    if (whole && takesDestination(view.root.getDefiningOp()) && !isPlaced(view.root)) {
      put(view.root, {slot, offset});
      if (failed(placeOverwritten(view.root))) return failure();
    } else {
      copied.insert({join, i});
    }
    offset += bytesOf(input);
  }
  return success();
}

/// A product is made onto what dies with it where that lies; a sum that others still read is copied before.
void Storage::placeProduct(Value product, Value onto) {
  if (isPlaced(product)) return;
  Operation *op = product.getDefiningOp();
  Place place = onto ? placeOf(onto) : Place();
  bool dies = onto && !place.offset && !place.stride && place.slot->bytes == bytesOf(product) && diesAt(*place.slot, position[op]) &&
              llvm::all_of(op->getOperands(), [&](Value v) { return v == onto || placeOf(v).slot != place.slot; });
  put(product, dies ? place : Place{makeFor(product, BufferKind::activation)});
}

/// Results of a kernel overwrite operands that die with it, where the kernel allows that.
LogicalResult Storage::placeLaunch(nn::LaunchOp launch) {
  int64_t here = position[launch];
  auto pairs = states.inplace(launch.getKernelAttr());
  if (failed(pairs)) return failure();
  llvm::DenseSet<Slot *> taken;
  for (auto [resultIndex, operandIndex] : **pairs) {
    Value result = launch.getOutputs()[resultIndex], operand = launch.getInputs()[operandIndex];
    if (isPlaced(result) || bytesOf(result) != bytesOf(operand)) continue;
    Place place = placeOf(operand);
    bool alone = llvm::count_if(launch.getInputs(), [&](Value other) { return placeOf(other).slot == place.slot; }) == 1;
    bool exact = !place.offset && !place.stride && place.slot->bytes == bytesOf(result); // a larger slot would live on for its sake
    if (exact && alone && diesAt(*place.slot, here) && taken.insert(place.slot).second) put(result, place);
  }
  for (Value result : launch.getOutputs())
    if (!isPlaced(result)) put(result, {makeFor(result, BufferKind::activation)});
  return success();
}

/// In place when the shard is consumed before the next bucket is reduced; else the whole gradient would wait with it.
void Storage::placeReduceScatter(state::ReduceScatterOp op) {
  int64_t here = position[op], last = lastUse.lookup(op.getShard());
  if (op->hasOneUse())
    if (auto accumulate = dyn_cast<state::AccumulateOp>(*op->user_begin()); accumulate && accumulate.getFirst())
      return put(op.getShard(), {sumOf(accumulate)});
  auto next = llvm::upper_bound(scatters, here);
  Place whole = placeOf(op.getWhole());
  bool sameType = bytesOf(op.getWhole()) == states.world * bytesOf(op.getShard());
  if (sameType && diesAt(*whole.slot, here) && (next == scatters.end() || last <= *next))
    return put(op.getShard(), {whole.slot, whole.offset, whole.stride + bytesOf(op.getShard())});
  put(op.getShard(), {makeFor(op.getShard(), BufferKind::gradient, bucketOf(op.getShard()), state::Role::gradient, state::Part::shard)});
}

/// What an update needs whole, or what ranks say of rows of a table: which, and their gradients.
void Storage::placeAllGather(state::AllGatherOp op) {
  Value whole = op.getWhole();
  if (FlatSymbolRefAttr bucket = bucketOf(whole)) {
    Place shard = placeOf(op.getShard());
    bool inside = !shard.offset && shard.stride == bytesOf(op.getShard()) && shard.slot->bytes == bytesOf(whole);
    bool reuses = inside && diesAt(*shard.slot, position[op]);
    return put(whole, {reuses ? shard.slot : makeFor(whole, BufferKind::gradient, bucket, state::Role::gradient, state::Part::whole)});
  }
  Slot *slot = makeFor(whole, BufferKind::activation);
  for (Operation *user : whole.getUsers())
    if (auto add = dyn_cast<state::AddRowsOp>(user); add && add.getRows() == whole) slot->bucket = add.getBucketAttr();
  put(whole, {slot});
}

LogicalResult Storage::placeResident(state::ResidentOp op) {
  auto bucket = states.bucket(op.getBucketAttr());
  if (bucket.isSharded(bucket.readRole()))
    return op.emitError() << "bucket " << op.getBucketAttr() << " is kept in shards, so no rank has it whole; zero.gather it";
  if (!bucket.isResident(bucket.readRole()))
    return op.emitError() << "bucket " << op.getBucketAttr() << " does not rest on the device; zero.gather it";
  put(op.getWhole(), {persistent(states.tensor(bucket, bucket.readRole()))});
  return success();
}

LogicalResult Storage::placeGather(state::GatherOp op) {
  auto bucket = states.bucket(op.getBucketAttr());
  bool rounded = bool(op.getKernelAttr());
  if (bucket.isResident(bucket.readRole()) && !rounded)
    return op.emitError() << "bucket " << op.getBucketAttr() << " is whole on every rank; zero.resident reads it";
  state::Role role = rounded ? state::Role::compute : bucket.readRole();
  Slot *slot = makeFor(op.getWhole(), BufferKind::gathered, op.getBucketAttr(), role, state::Part::whole);
  if (!rounded && !bucket.isSharded(role)) slot->bytes = planir::roomOf(bucket, bucket.tensorOf(bucket.readRole()));
  put(op.getWhole(), {slot});
  return success();
}

void Storage::placeToHost(state::ToHostOp op) {
  FlatSymbolRefAttr bucket = bucketOf(op.getResult());
  bool shard = bucket && op.getType().getNumElements() == int64_t(states.bucket(bucket).getShard());
  Slot *slot = makeFor(op.getResult(), bucket ? BufferKind::gradient : BufferKind::scalar, bucket, state::Role::gradient,
                       shard && states.world > 1 ? state::Part::shard : state::Part::whole);
  slot->name += ".on_host";
  slot->tier = state::Tier::host;
  put(op.getResult(), {slot});
}

LogicalResult Storage::placeResults(Operation &op) {
  int64_t here = position[&op];
  if (isView(&op) || isa<nn::JoinRowsOp, state::PackOp, state::ReleaseOp, state::PublishOp, state::WriteRowsOp, func::ReturnOp>(op))
    return success();
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    put(constant.getResult(), {persistent(states.constant(constant.getValue()))});
  } else if (auto resident = dyn_cast<state::ResidentOp>(op)) {
    return placeResident(resident);
  } else if (auto gather = dyn_cast<state::GatherOp>(op)) {
    return placeGather(gather);
  } else if (auto launch = dyn_cast<nn::LaunchOp>(op)) {
    return placeLaunch(launch);
  } else if (auto product = dyn_cast<nn::MatMulOp>(op)) {
    placeProduct(product, product.getOnto());
  } else if (auto blocks = dyn_cast<nn::BlockMatMulOp>(op)) {
    placeProduct(blocks, blocks.getOnto());
  } else if (auto scatter = dyn_cast<state::ReduceScatterOp>(op)) {
    placeReduceScatter(scatter);
  } else if (auto gather = dyn_cast<state::AllGatherOp>(op)) {
    placeAllGather(gather);
  } else if (auto lookUp = dyn_cast<state::LookUpOp>(op)) {
    put(lookUp.getRows(), {makeFor(lookUp.getRows(), BufferKind::activation)});
  } else if (auto add = dyn_cast<state::AddRowsOp>(op)) {
    Place shard = placeOf(add.getShard());
    put(add.getSum(), diesAt(*shard.slot, here) ? shard
                                                : Place{makeFor(add.getSum(), BufferKind::gradient, add.getBucketAttr(),
                                                                state::Role::gradient, state::Part::shard)});
  } else if (auto room = dyn_cast<state::RoomForRowsOp>(op)) {
    put(room.getRoom(), {makeFor(room.getRoom(), BufferKind::gradient)});
  } else if (auto toHost = dyn_cast<state::ToHostOp>(op)) {
    placeToHost(toHost);
  } else if (auto reduce = dyn_cast<state::AllReduceOp>(op)) {
    Place input = placeOf(reduce.getInput());
    put(reduce.getResult(), diesAt(*input.slot, here) ? input : Place{makeFor(reduce.getResult(), BufferKind::scalar)});
  } else if (auto accumulate = dyn_cast<state::AccumulateOp>(op)) {
    if (Value onto = accumulate.getOnto()) {
      Place place = placeOf(onto);
      put(accumulate.getSum(), diesAt(*place.slot, here)
                                   ? place
                                   : Place{makeFor(accumulate.getSum(), BufferKind::gradient, accumulate.getBucketAttr(),
                                                   state::Role::gradient, state::Part::shard)});
    } else {
      put(accumulate.getSum(), {sumOf(accumulate)});
    }
  } else if (auto bshd = op.getAttrOfType<BoolAttr>("bshd"); bshd && bshd.getValue()) {
    return op.emitOpError() << "is not a kernel, and only kernels take the heads of a position side by side (bshd)";
  } else if (takesDestination(&op)) {
    for (Value result : op.getResults())
      if (!isPlaced(result)) put(result, {makeFor(result, BufferKind::activation)});
  } else {
    return op.emitError() << "the schedule phase does not know " << op.getName() << "; it should be part of a kernel by now";
  }
  return success();
}

/// The host reads the results after the program: their slots become persistent, shared by all programs.
void Storage::placeReturned() {
  constexpr int64_t largest = 64; // a larger slot holds more than scalars
  static const char *const names[] = {"loss", "norm"};
  auto terminator = cast<func::ReturnOp>(program.getBody().front().getTerminator());
  for (auto [i, value] : llvm::enumerate(terminator.getOperands())) {
    resultCopies.push_back(nullptr);
    Slot *slot = placeOf(value).slot;
    if (slot->state && slot->kind == BufferKind::scalar) continue; // both results in one slot
    if (!slot->state && slot->bytes <= largest) {
      slot->state = states.result(names[i], slot->bytes);
      slot->kind = BufferKind::scalar;
    } else {
      resultCopies.back() = persistent(states.result(names[i], bytesOf(value)));
    }
  }
}

LogicalResult Storage::run() {
  if (program.getNumResults() > 2)
    return program.emitError() << "program @" << program.getName() << " returns " << program.getNumResults()
                               << " values; the host reads the loss and the squared gradient norm";
  findUses();
  for (auto [i, argument] : llvm::enumerate(program.getArguments())) {
    planir::StateOp state = states.input(program, i);
    if (!state) return failure();
    put(argument, {persistent(state)});
  }
  for (auto pack : program.getOps<state::PackOp>())
    if (failed(placePack(pack))) return failure();
  for (auto join : program.getOps<nn::JoinRowsOp>())
    if (failed(placeJoin(join))) return failure();
  for (Operation &op : program.getBody().front())
    if (failed(placeResults(op))) return failure();
  placeReturned();
  return success();
}

} // namespace zero::schedule

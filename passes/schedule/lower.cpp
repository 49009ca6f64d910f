//===- lower.cpp - plan-lower: tensors get bytes ---------------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/lowering.h"

#define DEBUG_TYPE "plan-lower"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_LOWERPASS
#include "passes/schedule/Passes.h.inc"

Value Lowering::use(Slot *slot) {
  if (!slot->value) {
    Location loc = function.getLoc();
    if (slot->state)
      slot->value = uses.create<UseOp>(loc, BufferType::get(b.getContext()), slot->state.getSymName());
    else
      slot->value =
          buffers.create<BufferOp>(loc, BufferType::get(b.getContext()), slot->name, slot->kind, slot->bytes, nullptr, nullptr, nullptr,
                                   slot->bucket, slot->tensor, slot->begin ? b.getI64IntegerAttr(slot->begin) : IntegerAttr(), slot->tier);
  }
  return slot->value;
}

/// In the order of their places; what single steps need besides (staging, optimizer state) joins them later.
void Lowering::makeBuffers() {
  for (Slot &slot : storage.allSlots()) use(&slot);
}

namespace {

/// Elements that a sum exchanges at a time, where each takes `bytes` of the room for what ranks send: whole lines of the cache, if not all.
int64_t sliceOf(int64_t count, int64_t bytes, int64_t room) {
  constexpr int64_t kLine = 32; // elements: 64 bytes of any type that travels
  return std::min(count, std::max<int64_t>(room / bytes / kLine * kLine, kLine));
}

} // namespace

void Lowering::sum(Location loc, CollectiveKind kind, Ref from, Ref to, int64_t count, Type type, FlatSymbolRefAttr bucket) {
  if (librarySums && type.isF32()) {
    make<CollectiveStep>(loc, {from}, {to}, kind, count, type, IntegerAttr());
    return;
  }
  int64_t element = type.getIntOrFloatBitWidth() / 8;
  int64_t slice = sliceOf(count, states.world * element, stagingBytes), room = states.world * slice * element;
  std::string name = bucket ? (bucket.getValue() + ".staging").str() : "staging";
  Value staging = use(storage.scratch(name, BufferKind::staging, room, bucket));
  make<CollectiveStep>(loc, {from}, {to, Ref{staging, 0, 0, room}}, kind, count, type, b.getI64IntegerAttr(slice));
}

void Lowering::lowerReturn(func::ReturnOp op) {
  SmallVector<Ref> results;
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    results.push_back(at(value));
    if (Slot *slot = storage.resultCopy(i)) {
      Ref to{use(slot), 0, 0, results.back().bytes};
      copy(op.getLoc(), results.back(), to);
      results.back() = to;
    }
  }
  Refs refs(results, {});
  b.create<ReturnOp>(op.getLoc(), refs.buffers, refs.offsets, refs.strides, refs.bytes, refs.inputs, nullptr);
}

LogicalResult Lowering::lower(Operation &op) {
  if (isa<nn::ReshapeOp, nn::RowsOp, nn::ConstantOp, state::ViewOp, state::OwnShardOp, state::ResidentOp, state::ReleaseOp>(op))
    return success(); // no step: another reference to the same bytes, or an end of life that its uses show
  if (auto launch = dyn_cast<nn::LaunchOp>(op)) {
    lowerLaunch(launch);
  } else if (auto product = dyn_cast<nn::MatMulOp>(op)) {
    lowerMatMul(product);
  } else if (auto blocks = dyn_cast<nn::BlockMatMulOp>(op)) {
    lowerBlocks(blocks);
  } else if (auto ofGroups = dyn_cast<nn::BlockMatMulSumOp>(op)) {
    lowerBlockSum(ofGroups);
  } else if (auto product = dyn_cast<nn::MatMulEpilogueOp>(op)) {
    lowerMatMulEpilogue(product);
  } else if (auto join = dyn_cast<nn::JoinRowsOp>(op)) {
    lowerJoin(join);
  } else if (auto attention = dyn_cast<nn::AttentionOp>(op)) {
    lowerAttention(attention);
  } else if (auto gradient = dyn_cast<nn::AttentionGradOp>(op)) {
    lowerAttentionGrad(gradient);
  } else if (auto pack = dyn_cast<state::PackOp>(op)) {
    lowerPack(pack);
  } else if (auto gather = dyn_cast<state::GatherOp>(op)) {
    lowerGather(gather);
  } else if (auto publish = dyn_cast<state::PublishOp>(op)) {
    lowerPublish(publish);
  } else if (auto gather = dyn_cast<state::AllGatherOp>(op)) {
    allGather(namedAfter(gather.getWhole(), "all_gather"), at(gather.getShard()), at(gather.getWhole()), elementsOf(gather.getShard()),
              elementOf(gather.getShard()));
  } else if (auto scatter = dyn_cast<state::ReduceScatterOp>(op)) {
    sum(namedAfter(scatter.getShard(), "reduce_scatter"), CollectiveKind::reduce_scatter, at(scatter.getWhole()), at(scatter.getShard()),
        elementsOf(scatter.getShard()), elementOf(scatter.getWhole()), bucketOf(scatter.getShard()));
  } else if (auto toHost = dyn_cast<state::ToHostOp>(op)) {
    copy(namedAfter(toHost.getResult(), "to_host"), at(toHost.getInput()), at(toHost.getResult()));
  } else if (auto reduce = dyn_cast<state::AllReduceOp>(op)) {
    Ref from = at(reduce.getInput()), to = at(reduce.getResult());
    copy(named(reduce, "all_reduce"), from, to);
    sum(named(reduce, "all_reduce"), CollectiveKind::all_reduce, to, to, elementsOf(reduce.getInput()), elementOf(reduce.getInput()),
        nullptr);
  } else if (auto lookUp = dyn_cast<state::LookUpOp>(op)) {
    lowerLookUp(lookUp);
  } else if (auto add = dyn_cast<state::AddRowsOp>(op)) {
    lowerAddRows(add);
  } else if (auto accumulate = dyn_cast<state::AccumulateOp>(op)) {
    lowerAccumulate(accumulate);
  } else if (auto update = dyn_cast<state::UpdateOp>(op)) {
    lowerUpdate(update);
  } else if (auto room = dyn_cast<state::RoomForRowsOp>(op)) {
    make<FillStep>(op.getLoc(), {}, {at(room.getRoom())}, 0); // updates fill it part by part
  } else if (auto update = dyn_cast<state::UpdateRowsOp>(op)) {
    lowerUpdateRows(update);
  } else if (auto write = dyn_cast<state::WriteRowsOp>(op)) {
    lowerWriteRows(write);
  } else if (auto terminator = dyn_cast<func::ReturnOp>(op)) {
    lowerReturn(terminator);
  } else {
    return op.emitError() << "the schedule phase does not know " << op.getName();
  }
  return success();
}

LogicalResult Lowering::run() {
  auto role = symbolizeProgramRole(function->getAttrOfType<StringAttr>(state::ZeroDialect::kRole).getValue());
  if (failed(storage.run())) return failure();
  program = b.create<ProgramOp>(function.getLoc(), function.getName(), *role, function->hasAttr(state::ZeroDialect::kClips), nullptr,
                                nullptr, nullptr);
  Block *body = b.createBlock(&program.getBody());
  // Markers after the persistent and the transient buffers; erased in the end.
  auto lastUse = b.create<DecisionOp>(function.getLoc(), "", "", ""), lastBuffer = b.create<DecisionOp>(function.getLoc(), "", "", "");
  uses.setInsertionPoint(lastUse);
  buffers.setInsertionPoint(lastBuffer);
  makeBuffers();
  b.setInsertionPointToEnd(body);
  for (Operation &op : function.getBody().front())
    if (failed(lower(op))) return failure();
  lastUse.erase();
  lastBuffer.erase();
  return success();
}

namespace {

struct Lower : impl::LowerPassBase<Lower> {
  using LowerPassBase::LowerPassBase;
  void runOnOperation() override {
    States states(getOperation());
    if (failed(states.checkTensors())) return signalPassFailure();
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(state::ZeroDialect::kRole)) programs.push_back(function);
    for (func::FuncOp function : programs) {
      Lowering lowering(function, states, stagingBytes, librarySums, tf32);
      if (failed(lowering.run())) return signalPassFailure();
      copies += lowering.copies;
      inplace += lowering.inplace;
    }
    for (func::FuncOp function : programs) function.erase(); // not before: states are inserted where the first stands
  }
};

} // namespace
} // namespace zero::schedule

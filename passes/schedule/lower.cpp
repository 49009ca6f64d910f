//===- lower.cpp - plan-lower: tensors get bytes ---------------------------------------------------===//
#include "compiler/nn/library/sums.h"
#include "passes/schedule/Passes.h"
#include "passes/schedule/storage.h"

#define DEBUG_TYPE "plan-lower"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_LOWERPASS
#include "passes/schedule/Passes.h.inc"

namespace {

int64_t elementsOf(Value value) { return cast<ShapedType>(value.getType()).getNumElements(); }
Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

/// Elements that a sum exchanges at a time, where each takes `bytes` of the room for what ranks send: whole lines of the cache, if not all.
int64_t sliceOf(int64_t count, int64_t bytes, int64_t room) {
  constexpr int64_t kLine = 32; // elements: 64 bytes of any type that travels
  return std::min(count, std::max<int64_t>(room / bytes / kLine * kLine, kLine));
}

/// One program: its operations in order, each as the steps that do it.
class Lowering {
public:
  Lowering(func::FuncOp function, States &states, int64_t stagingBytes, bool librarySums, bool tf32)
      : function(function), states(states), stagingBytes(stagingBytes), librarySums(librarySums), tf32(tf32), storage(function, states),
        b(function) {}

  LogicalResult run();
  int64_t copies = 0, inplace = 0;

private:
  void makeBuffers();
  LogicalResult lower(Operation &op);
  void lowerLaunch(nn::LaunchOp op);
  void lowerMatMul(nn::MatMulOp op);
  void lowerJoin(nn::JoinRowsOp op);
  void lowerAttention(nn::AttentionOp op);
  void lowerAttentionGrad(nn::AttentionGradOp op);
  void lowerPack(state::PackOp op);
  void lowerAccumulate(state::AccumulateOp op);
  void lowerUpdate(state::UpdateOp op);
  void lowerPublish(state::PublishOp op);
  void lowerGather(state::GatherOp op);
  void lowerLookUp(state::LookUpOp op);
  void lowerAddRows(state::AddRowsOp op);
  void lowerReturn(func::ReturnOp op);

  Ref at(Value value) { return storage.refOf(value); }
  SmallVector<Ref> at(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value v) { return at(v); });
  }
  Value use(Slot *slot);
  Ref whole(StateOp state) { return {use(storage.persistent(state)), 0, 0, int64_t(state.getBytes())}; }
  /// What this rank updates of a state that lies at `ref` on the device: its shard, unless `all` or unless it stores nothing else.
  Ref own(Ref ref, StateOp state, bool all);
  /// Bytes of a state where steps reach them: at home in the memory that these work in, or in a buffer there that they are fetched to.
  struct Reached {
    StateOp state;
    Ref home, here;
  };
  Reached fetched(Operation *op, StateOp state) { return fetched(op, state, whole(state), state::Tier::device); }
  Reached fetched(Operation *op, StateOp state, Ref home, state::Tier memory);
  /// The same of what is written before anything reads it.
  Reached overwritten(Operation *op, StateOp state, Ref home, state::Tier memory);
  /// Room in a memory for these bytes of a state in another tier.
  Ref roomFor(StateOp state, Ref home, state::Tier memory, StringRef what);
  /// What was changed there goes home, if that is elsewhere.
  void evict(Operation *op, const Reached &reached);
  void copy(Location loc, Ref from, Ref to) {
    if (from == to) return;
    ++copies;
    make<CopyStep>(loc, {from}, {to});
  }
  void allGather(Location loc, Ref from, Ref to, int64_t count, Type type) {
    make<CollectiveStep>(loc, {from}, {to}, CollectiveKind::all_gather, count, type, nullptr);
  }
  /// A sum over ranks, of a bucket's elements or of others.
  void sum(Location loc, CollectiveKind kind, Ref from, Ref to, int64_t count, Type type, FlatSymbolRefAttr bucket);
  /// A step on lane compute; `rest` are the operands of its own.
  template <typename Step, typename... Rest> Step make(Location loc, ArrayRef<Ref> read, ArrayRef<Ref> written, Rest &&...rest) {
    Refs refs(read, written);
    return b.create<Step>(loc, refs.buffers, refs.offsets, refs.strides, refs.bytes, refs.inputs, Lane::compute, DenseI64ArrayAttr(),
                          std::forward<Rest>(rest)...);
  }
  Location named(Operation *op, StringRef bucket, StringRef what) {
    return NameLoc::get(b.getStringAttr(bucket + "." + what), op->getLoc());
  }
  /// Of what makes `result`: after the bucket whose gradient that is, else its own.
  Location namedAfter(Value result, StringRef what) {
    StringRef bucket = bucketNameOf(result);
    return bucket.empty() ? result.getLoc() : named(result.getDefiningOp(), bucket, what);
  }
  /// The operation's location; with a name that people can make something of.
  Location named(Operation *op, StringRef otherwise) {
    return nameOf(op->getLoc()).empty() ? NameLoc::get(b.getStringAttr(otherwise), op->getLoc()) : op->getLoc();
  }

  func::FuncOp function;
  States &states;
  int64_t stagingBytes;
  bool librarySums, tf32;
  Storage storage;
  OpBuilder b; // at the end of the program's steps
  ProgramOp program;
  llvm::DenseMap<Operation *, Reached> updated;                          // parameters of a bucket that is to be published
  OpBuilder uses{function.getContext()}, buffers{function.getContext()}; // after the last of each
};

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

void Lowering::lowerLaunch(nn::LaunchOp op) {
  if (nn::productOf(op)) return; // that makes it
  SmallVector<Ref> in = at(op.getInputs()), out = at(op.getOutputs());
  for (const Ref &ref : out) inplace += llvm::is_contained(in, ref);
  make<LaunchStep>(named(op, op.getKernel()), in, out, op.getKernel());
}

void Lowering::lowerMatMul(nn::MatMulOp op) {
  auto lhs = op.getLhs().getType(), rhs = op.getRhs().getType(), result = op.getResult().getType();
  bool batched = lhs.getRank() == 3;
  auto size = [&](auto type, int64_t dim) { return type.getShape()[dim + batched]; };
  auto matrix = [&](auto type) { return batched ? size(type, 0) * size(type, 1) : 0; };
  int64_t k = size(lhs, op.getTransposeLhs() ? 0 : 1);
  SmallVector<Ref> read{at(op.getLhs()), at(op.getRhs())}, written{at(op.getResult())};
  if (Value onto = op.getOnto()) {
    copy(named(op, "matmul"), at(onto), at(op.getResult()));
    read.push_back(at(op.getResult()));
  }
  auto epilogue = Epilogue::none;
  if (nn::LaunchOp sums = nn::sumsBeside(op)) {
    written.push_back(at(sums->getResult(0)));
    epilogue = nn::summedOperand(op, sums) == 0 ? Epilogue::sums_of_a : Epilogue::sums_of_b;
  }
  make<MatMulStep>(named(op, "matmul"), read, written, lhs.getElementType(), result.getElementType(), size(result, 0), size(result, 1), k,
                   batched ? lhs.getShape()[0] : 1, ArrayRef<int64_t>{size(lhs, 1), size(rhs, 1), size(result, 1)},
                   ArrayRef<int64_t>{matrix(lhs), matrix(rhs), matrix(result)}, op.getTransposeLhs(), op.getTransposeRhs(),
                   bool(op.getOnto()), tf32 && lhs.getElementType().isF32(), epilogue);
}

void Lowering::lowerJoin(nn::JoinRowsOp op) {
  Ref to = at(op.getResult());
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    to.bytes = at(input).bytes;
    if (storage.isCopied(op, unsigned(i))) copy(named(op, "join_rows"), at(input), to);
    to.offset += to.bytes;
  }
}

template <typename Op> SmallVector<int64_t> attentionSizes(Op op) {
  auto q = op.getQ().getType().getShape(), k = op.getK().getType().getShape();
  return {q[0], q[1], k[1], q[2], k[2], q[3]};
}
template <typename Op> DenseI64ArrayAttr maskShape(Op op, OpBuilder &b) {
  return op.getMask() ? b.getDenseI64ArrayAttr(op.getMask().getType().getShape()) : DenseI64ArrayAttr();
}

void Lowering::lowerAttention(nn::AttentionOp op) {
  make<AttentionStep>(named(op, "attention"), at(op.getOperands()), at(op.getResults()), op.getQ().getType().getElementType(),
                      attentionSizes(op), op.getScale(), op.getCausal(), maskShape(op, b));
}
void Lowering::lowerAttentionGrad(nn::AttentionGradOp op) {
  make<AttentionGradStep>(named(op, "attention_grad"), at(op.getOperands()), at(op.getResults()), op.getQ().getType().getElementType(),
                          attentionSizes(op), op.getScale(), op.getCausal(), maskShape(op, b));
}

void Lowering::lowerPack(state::PackOp op) {
  Ref packed = at(op.getResult());
  int64_t element = nn::bytesOf(op.getResult().getType()) / elementsOf(op.getResult()), end = 0;
  auto fill = [&](int64_t from, int64_t to) {
    if (from < to)
      make<FillStep>(named(op, bucketNameOf(op.getResult()), "padding"), {},
                     {{packed.buffer, packed.offset + from, packed.stride, to - from}}, 0);
  };
  for (auto [i, input, offset] : llvm::enumerate(op.getInputs(), op.getOffsets())) {
    Ref from = at(input), to{packed.buffer, packed.offset + offset * element, packed.stride, from.bytes};
    fill(end, offset * element);
    end = offset * element + from.bytes;
    if (storage.isCopied(op, i)) copy(named(op, "pack"), from, to);
  }
  fill(end, packed.bytes);
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

/// The device updates in its memory, the host in its own: what rests elsewhere comes there and returns. What programs read goes home too:
/// the compute copy that the update has made, or the master itself where that has the same numbers. Other ranks' shards join it on the
/// device.
void Lowering::lowerUpdate(state::UpdateOp op) {
  auto bucket = states.bucket(op.getBucketAttr());
  bool onHost = bucket.getUpdatedOnHost(), published = bucket.isPublished();
  state::Tier memory = onHost ? state::Tier::host : state::Tier::device;
  int64_t count = op.getGradient().getType().getNumElements();
  bool slice = count != bucket.elementsOf(op.getWhole() ? state::Part::whole : state::Part::shard);
  SmallVector<Reached> reached; // to go home afterwards
  SmallVector<Ref> in, out;
  std::optional<Reached> joined; // by the other ranks' shards
  // Bytes of a state that come and return at once: of a disk all of the last block, and all of the state where ranks have it whole.
  auto homeOf = [&](StateOp state, bool isRead) {
    Ref home = whole(state);
    bool noDisk = tierOf(state) == state::Tier::device || (published && !isRead); // reaches it from the device, if at all
    if (!slice) return onHost && noDisk ? own(home, state, op.getWhole()) : home;
    int64_t element = state.getTensor()->getType().getIntOrFloatBitWidth() / 8, begin = int64_t(op.getBegin()) * element;
    bool last = count * element == bucket.bytesOf(*state.getTensor()) - begin;
    home.offset = begin, home.bytes = last ? home.bytes - begin : count * element;
    return home;
  };
  auto add = [&](state::Role role, bool isRead) {
    StateOp state = states.tensor(bucket, role);
    Ref home = homeOf(state, isRead);
    Reached tensor = isRead ? fetched(op, state, home, memory) : overwritten(op, state, home, memory);
    Ref part = tensor.here;
    if (slice)
      part.bytes = count * (state.getTensor()->getType().getIntOrFloatBitWidth() / 8);
    else if (bucket.bytesOf(*state.getTensor()) <= home.bytes) // all of the state, not this rank's shard alone
      part = own(tensor.here, state, op.getWhole());
    if (isRead) in.push_back(part);
    out.push_back(part);
    if (!published || role != bucket.readRole())
      reached.push_back(tensor);
    else
      joined = onHost ? Reached{state, {}, part} : tensor;
  };
  add(state::Role::master, true);
  in.push_back(at(op.getGradient()));
  for (auto tensor : bucket.getTensors().getAsRange<state::TensorAttr>())
    if (state::isMoment(tensor.getRole())) add(tensor.getRole(), true);
  if (state::TensorAttr compute = bucket.tensorOf(state::Role::compute)) {
    StateOp state = states.tensor(bucket, state::Role::compute);
    if (compute.getType() != bucket.tensorOf(state::Role::master).getType())
      add(state::Role::compute, false);
    else if (published)
      joined = Reached{state, {}, out[0]};
    else
      reached.push_back({state, homeOf(state, false), out[0]});
  }
  in.push_back(at(op.getHyper()));
  if (op.getNorm2()) in.push_back(at(op.getNorm2()));
  if (op.getSums()) out.push_back(at(op.getSums()));
  make<UpdateStep>(named(op, op.getBucket(), "update"), in, out, op.getBucket(), op.getKernel(), elementOf(op.getGradient()), op.getWhole(),
                   op.getBegin());
  for (const Reached &tensor : reached) evict(op, tensor);
  if (!joined) return;
  if (onHost) {
    Ref made = joined->here;
    joined = overwritten(op, joined->state, whole(joined->state), state::Tier::device);
    copy(named(op, joined->state.getSymName(), "bring"), made, own(joined->here, joined->state, op.getWhole()));
  }
  updated[bucket] = *joined;
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
    make<LaunchStep>(named(op, op.getBucket(), "round"), {whole(parameter)}, {to}, *op.getKernel());
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
    for (auto bucket : getOperation().getOps<state::BucketOp>()) // a frozen master has a compute copy in its place and no step touches it
      if (bucket.tensorOf(state::Role::compute)) states.tensor(bucket, state::Role::master);
    for (func::FuncOp function : programs) function.erase(); // not before: states are inserted where the first stands
  }
};

} // namespace
} // namespace zero::schedule

//===- PlanDialect.cpp - registration, verifiers and helpers of the plan dialect -----------------===//
#include "compiler/plan/Plan.h"
#include "compiler/plan/PlanSyntax.h"
#include "compiler/zero/Zero.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "runtime/plan/epilogue.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/plan/PlanDialect.cpp.inc"
#include "compiler/plan/PlanEnums.cpp.inc"
#include "compiler/plan/PlanInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/plan/PlanAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/plan/PlanTypes.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/plan/PlanOps.cpp.inc"

using namespace mlir;

namespace zero::planir {

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/plan/PlanOps.cpp.inc"
      >();
  registerTypes();
  registerAttributes();
}

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/plan/PlanTypes.cpp.inc"
      >();
}

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/plan/PlanAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

SmallVector<Access, 6> accessesOf(StepOp step) {
  SmallVector<Access, 6> accesses;
  ArrayRef<int64_t> offsets = step.getOffsets(), strides = step.getStrides(), bytes = step.getBytes();
  for (auto [i, buffer] : llvm::enumerate(step.getBuffers()))
    accesses.push_back({{buffer, offsets[i], strides[i], bytes[i]}, i >= step.getInputs()});
  return accesses;
}

Refs::Refs(ArrayRef<Ref> read, ArrayRef<Ref> written) : inputs(read.size()) {
  for (ArrayRef<Ref> group : {read, written}) {
    for (const Ref &ref : group) {
      buffers.push_back(ref.buffer);
      offsets.push_back(ref.offset);
      strides.push_back(ref.stride);
      bytes.push_back(ref.bytes);
    }
  }
}

int64_t workAlignmentOf(ModuleOp module) {
  bool disk = llvm::any_of(module.getOps<StateOp>(), [](StateOp state) { return tierOf(state) == state::Tier::disk; });
  for (auto program : module.getOps<ProgramOp>())
    disk |=
        llvm::any_of(program.getBody().front().getOps<BufferOp>(), [](BufferOp buffer) { return buffer.getTier() == state::Tier::disk; });
  return alignmentOf(disk ? state::Tier::disk : state::Tier::device);
}

int64_t roomOf(state::BucketOp bucket, state::TensorAttr tensor) {
  int64_t bytes = bucket.bytesOf(tensor);
  return tensor.getTier() == state::Tier::disk ? llvm::alignTo(bytes, alignmentOf(state::Tier::disk)) : bytes;
}

state::Tier tierOf(StateOp state) { return state.getTensor() ? state.getTensor()->getTier() : state::Tier::device; }

StringRef bucketIn(Value buffer, const SymbolTable &symbols) {
  std::optional<StringRef> bucket;
  if (auto own = buffer.getDefiningOp<BufferOp>()) bucket = own.getBucket();
  if (auto use = buffer.getDefiningOp<UseOp>()) bucket = symbols.lookup<StateOp>(use.getStateAttr().getAttr()).getBucket();
  return bucket.value_or("");
}

SmallVector<StepOp> stepsOf(ProgramOp program) {
  SmallVector<StepOp> steps;
  for (Operation &op : program.getBody().front()) {
    if (isa<BufferOp, UseOp>(op)) continue; // most of all, and to ask them for an interface takes long
    if (auto step = dyn_cast<StepOp>(op)) steps.push_back(step);
  }
  return steps;
}

bool waitsForNorm(ProgramOp program) {
  return program.getClips() || program->getParentOfType<ModuleOp>()->hasAttr(state::ZeroDialect::kScalesLoss);
}

std::string nameOf(Location location) {
  std::string name;
  location->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner)) {
      name = named.getName().str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return name;
}

//===----------------------------------------------------------------------===//
// Names of values, symbols, verifiers
//===----------------------------------------------------------------------===//

/// No buffer and no reference is larger: sums of a few of them, also over all ranks, stay below 2^63.
static constexpr int64_t kMostBytes = int64_t(1) << 56;

/// Whoever holds elements of a bucket says of which.
template <typename Op> static LogicalResult verifyTensor(Op op) {
  if (op.getTensor() && !op.getBucket()) return op.emitOpError() << "holds " << *op.getTensor() << " of no bucket";
  return success();
}

/// "/h.0/mlp/MatMul" as the name of an SSA value.
static std::string valueName(StringRef name) {
  std::string result = name.ltrim('/').str();
  for (char &c : result)
    if (!llvm::isAlnum(c) && c != '_' && c != '$') c = '.';
  return result;
}
void BufferOp::getAsmResultNames(function_ref<void(Value, StringRef)> name) { name(getResult(), valueName(getName())); }
void UseOp::getAsmResultNames(function_ref<void(Value, StringRef)> name) { name(getResult(), valueName(getState())); }

LogicalResult UseOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (tables.lookupNearestSymbolFrom<StateOp>(*this, getStateAttr())) return success();
  return emitOpError() << "no plan.state is called " << getStateAttr();
}

LogicalResult StateOp::verify() {
  int64_t bytes = int64_t(getBytes());
  if (bytes < 0 || bytes > kMostBytes || int64_t(getOffset().value_or(0)) < 0)
    return emitOpError() << "has " << bytes << " bytes at " << int64_t(getOffset().value_or(0));
  if (failed(verifyTensor(*this))) return failure();
  if (getBucket() && !getTensor()) return emitOpError() << "keeps something of " << getBucketAttr() << " without saying what";
  if (getInput() && !(getRole() && getType())) return emitOpError() << "is an input without a role or a type";
  auto tensor = getType() ? dyn_cast<RankedTensorType>(*getType()) : RankedTensorType();
  if (getType() && !(tensor && tensor.hasStaticShape() && tensor.getElementType().isIntOrFloat()))
    return emitOpError() << "has the type " << *getType() << ", which is no tensor of static shape";
  for (ShapedType content : {ShapedType(tensor), getValue() ? getValue()->getShapedType() : ShapedType()}) {
    if (!content) continue;
    int64_t needed = content.getNumElements() * llvm::divideCeil(content.getElementTypeBitWidth(), 8);
    if (needed != bytes) return emitOpError() << "has " << bytes << " bytes for " << content << ", which takes " << needed;
  }
  return success();
}

LogicalResult BufferOp::verify() {
  int64_t bytes = int64_t(getBytes()), offset = int64_t(getOffset().value_or(0));
  if (bytes < 0 || bytes > kMostBytes || offset < 0) return emitOpError() << "has " << bytes << " bytes at " << offset;
  if (failed(verifyTensor(*this))) return failure();
  if (getFirst().has_value() != getLast().has_value()) return emitOpError() << "has one end of a life without the other";
  if (getFirst() && (int64_t(*getFirst()) < 0 || int64_t(*getLast()) < int64_t(*getFirst())))
    return emitOpError() << "lives from step " << int64_t(*getFirst()) << " to step " << int64_t(*getLast());
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  if (int64_t(getHeight().value_or(0)) < 0 || int64_t(getLive().value_or(0)) < 0) return emitOpError() << "has a negative height";
  if (getAway() && (getAway()->size() != 4 || llvm::any_of(*getAway(), [](int64_t bytes) { return bytes < 0; })))
    return emitOpError() << "needs two heights and two sums of bytes away from the device";
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<BufferOp, UseOp, DecisionOp, EntryOp, StepOp>(op)) return op.emitOpError() << "cannot stand in a plan.program";
  if (isa<ReturnOp>(getBody().front().back())) return success();
  return emitOpError() << "does not end with plan.return";
}

/// References must have a size and lie inside their buffers on every rank. What is checked of steps and of the return alike.
template <typename Op> static LogicalResult verifyRefs(Op op) {
  size_t count = op.getBuffers().size();
  if (op.getOffsets().size() != count || op.getStrides().size() != count || op.getBytes().size() != count || op.getInputs() > count)
    return op->emitOpError() << "lists of its references differ in length";
  int64_t world = state::worldOf(op);
  for (size_t i = 0; i < count; ++i) {
    Ref ref{op.getBuffers()[i], op.getOffsets()[i], op.getStrides()[i], op.getBytes()[i]};
    if (!isa_and_nonnull<BufferOp, UseOp>(ref.buffer.getDefiningOp()))
      return op->emitOpError() << "reference " << i << " is neither a plan.buffer nor a plan.use";
    if (ref.offset < 0 || ref.stride < 0 || ref.bytes < 0)
      return op->emitOpError() << "reference " << i << " has a negative offset, stride or size";
    if (ref.offset > kMostBytes || ref.stride > kMostBytes / world || ref.bytes > kMostBytes)
      return op->emitOpError() << "reference " << i << " lies beyond any memory";
    auto buffer = ref.buffer.template getDefiningOp<BufferOp>(); // states are checked where symbols may be looked up
    if (buffer && ref.end(world) > int64_t(buffer.getBytes()))
      return op->emitOpError() << "reference " << i << " ends at byte " << ref.end(world) << " of a buffer of " << buffer.getBytes();
  }
  return success();
}

/// Pairs of a lane and a tick there can be.
static LogicalResult verifyWaits(Operation *op, DenseI64ArrayAttr waits) {
  if (!waits) return success();
  if (waits.size() % 2) return op->emitOpError() << "waits are not pairs of lane and tick";
  for (int64_t i = 0; i < waits.size(); i += 2)
    if (waits[i] < 0 || waits[i] > getMaxEnumValForLane() || waits[i + 1] < 0)
      return op->emitOpError() << "waits for tick " << waits[i + 1] << " of lane " << waits[i] << ", which cannot be";
  return success();
}

LogicalResult EntryOp::verify() {
  if (getWaits().size() % 3) return emitOpError() << "waits are not triples of step, lane and tick";
  for (size_t i = 0; i < getWaits().size(); i += 3)
    if (getWaits()[i] < 0 || getWaits()[i + 1] < 0 || getWaits()[i + 1] > getMaxEnumValForLane() || getWaits()[i + 2] < 0)
      return emitOpError() << "lets step " << getWaits()[i] << " wait for tick " << getWaits()[i + 2] << " of lane " << getWaits()[i + 1]
                           << ", which cannot be";
  return verifyWaits(*this, getInputWaitsAttr());
}
LogicalResult EntryOp::verifySymbolUses(SymbolTableCollection &tables) {
  Operation *module = (*this)->getParentOfType<ModuleOp>();
  if (module && tables.lookupSymbolIn<ProgramOp>(module, getAfterAttr())) return success();
  return emitOpError() << "no plan.program is called " << getAfterAttr();
}

LogicalResult ReturnOp::verify() { return failed(verifyRefs(*this)) ? failure() : verifyWaits(*this, getWaitsAttr()); }

/// Besides, a step has as many references as its form asks for (any number where the list is empty), and waits for lanes there are.
static LogicalResult verifyStep(StepOp step, ArrayRef<unsigned> reads, ArrayRef<unsigned> writes) {
  if (failed(verifyRefs(step))) return failure();
  size_t inputs = step.getInputs(), outputs = step.getBuffers().size() - inputs;
  if (!reads.empty() && !llvm::is_contained(reads, inputs))
    return step->emitOpError() << "reads " << inputs << " references, which is not its form";
  if (!writes.empty() && !llvm::is_contained(writes, outputs))
    return step->emitOpError() << "writes " << outputs << " references, which is not its form";
  return verifyWaits(step, step.getWaitsAttr());
}

LogicalResult LaunchStep::verify() { return verifyStep(*this, {}, {}); }
LogicalResult MatMulStep::verify() {
  if (getLd().size() != 3 || getStep().size() != 3) return emitOpError() << "needs three leading dimensions and three steps: of A, B and C";
  plan::EpilogueForm epilogue = plan::formOf(plan::MatMul::Epilogue(getEpilogue()));
  bool grouped = getGrouped() != Grouped::none;
  return verifyStep(*this, {(getAccumulate() ? 3u : 2u) + unsigned(epilogue.reads()) + unsigned(grouped)},
                    {1u + unsigned(epilogue.writesAux)});
}
/// What attention and its gradient say of themselves.
template <typename Op> static LogicalResult verifySizes(Op op) {
  if (op.getSizes().size() != 6) return op.emitOpError() << "needs six sizes: batch, heads, kv_heads, q_len, kv_len, dim";
  if (auto band = op.getBand(); band && band->size() != 2) return op.emitOpError() << "needs two bounds of a band: first and last";
  if (op.getBiasParts() == 0) return op.emitOpError() << "needs a part at least of a bias's gradient";
  return success();
}
LogicalResult AttentionStep::verify() {
  if (failed(verifySizes(*this))) return failure();
  return verifyStep(*this, {3u + bool(getMaskShape()) + bool(getBiasParts())}, {2});
}
LogicalResult AttentionGradStep::verify() {
  if (failed(verifySizes(*this))) return failure();
  return verifyStep(*this, {6u + bool(getMaskShape()) + bool(getBiasParts())}, {3u + bool(getBiasParts())});
}
LogicalResult CollectiveStep::verify() {
  bool gathers = getKind() == CollectiveKind::all_gather;
  int64_t count = int64_t(getCount()), slice = int64_t(getSlice().value_or(0));
  if (gathers && getSlice()) return emitOpError() << "gathers by slices, which only sums have";
  if (getSlice() && (slice < 1 || slice > count))
    return emitOpError() << "sums " << count << " elements by slices of " << slice << "; expected 1 to " << count;
  if (!gathers && !getSlice() && !getType().isF32())
    return emitOpError() << "leaves a sum of " << getType() << " to the library, which makes those of f32";
  return verifyStep(*this, {1}, {1, 2});
}
LogicalResult CopyStep::verify() {
  if (getBytes().size() == 2 && getBytes()[0] != getBytes()[1])
    return emitOpError() << "copies " << getBytes()[0] << " bytes to " << getBytes()[1];
  return verifyStep(*this, {1}, {1});
}
LogicalResult FillStep::verify() { return verifyStep(*this, {}, {1}); }
LogicalResult UpdateStep::verify() {
  if (getInputs() < 2 || getInputs() == getBuffers().size())
    return emitOpError() << "reads parameters and their gradient and writes parameters";
  return verifyStep(*this, {}, {});
}
LogicalResult UpdateRowsStep::verify() {
  if (getBuckets().empty() || getBuckets().size() != getBegins().size())
    return emitOpError() << "updates rows of a table in " << getBuckets().size() << " buckets that begin at " << getBegins().size()
                         << " places";
  return verifyStep(*this, {}, {});
}
LogicalResult WriteRowsStep::verify() { return verifyStep(*this, {3}, {1}); }

} // namespace zero::planir

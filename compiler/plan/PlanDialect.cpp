//===- PlanDialect.cpp - registration, verifiers and helpers of the plan dialect -----------------===//
#include "compiler/plan/Plan.h"
#include "compiler/plan/PlanSyntax.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/plan/PlanDialect.cpp.inc"
#include "compiler/plan/PlanEnums.cpp.inc"
#include "compiler/plan/PlanInterfaces.cpp.inc"
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
}

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/plan/PlanTypes.cpp.inc"
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

SmallVector<StepOp> stepsOf(ProgramOp program) {
  SmallVector<StepOp> steps;
  for (Operation &op : program.getBody().front())
    if (auto step = dyn_cast<StepOp>(op)) steps.push_back(step);
  return steps;
}

StateOp stateOf(Value buffer) {
  auto use = buffer.getDefiningOp<UseOp>();
  return use ? SymbolTable::lookupNearestSymbolFrom<StateOp>(use, use.getStateAttr()) : nullptr;
}

int64_t bytesOf(Value buffer) {
  if (auto transient = buffer.getDefiningOp<BufferOp>()) return transient.getBytes();
  return stateOf(buffer).getBytes();
}

int64_t worldOf(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto world = module ? module->getAttrOfType<IntegerAttr>("zero.world") : IntegerAttr();
  return world ? world.getInt() : 1;
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

/// References must have a size, lie inside their buffers on every rank, and be as many as the step's form asks for.
static LogicalResult verifyStep(StepOp step, ArrayRef<unsigned> reads, ArrayRef<unsigned> writes) {
  size_t count = step.getBuffers().size(), inputs = step.getInputs();
  if (step.getOffsets().size() != count || step.getStrides().size() != count || step.getBytes().size() != count || inputs > count)
    return step->emitOpError() << "lists of its references differ in length";
  if (!reads.empty() && !llvm::is_contained(reads, inputs))
    return step->emitOpError() << "reads " << inputs << " references, which is not its form";
  if (!writes.empty() && !llvm::is_contained(writes, count - inputs))
    return step->emitOpError() << "writes " << count - inputs << " references, which is not its form";
  if (DenseI64ArrayAttr waits = step.getWaitsAttr(); waits && waits.size() % 2)
    return step->emitOpError() << "waits are not pairs of lane and tick";
  int64_t world = worldOf(step);
  for (auto [i, access] : llvm::enumerate(accessesOf(step))) {
    const Ref &ref = access.ref;
    if (ref.offset < 0 || ref.stride < 0 || ref.bytes < 0)
      return step->emitOpError() << "reference " << i << " has a negative offset, stride or size";
    auto buffer = ref.buffer.getDefiningOp<BufferOp>(); // states are checked where symbols may be looked up
    if (buffer && ref.end(world) > int64_t(buffer.getBytes()))
      return step->emitOpError() << "reference " << i << " ends at byte " << ref.end(world) << " of a buffer of " << buffer.getBytes();
  }
  return success();
}

LogicalResult LaunchStep::verify() { return verifyStep(*this, {}, {}); }
LogicalResult MatMulStep::verify() {
  if (getLd().size() != 3 || getStep().size() != 3) return emitOpError() << "needs three leading dimensions and three steps: of A, B and C";
  return verifyStep(*this, {2}, {1});
}
LogicalResult AttentionStep::verify() {
  if (getSizes().size() != 6) return emitOpError() << "needs six sizes: batch, heads, kv_heads, q_len, kv_len, dim";
  return verifyStep(*this, {getMaskShape() ? 4u : 3u}, {2});
}
LogicalResult AttentionGradStep::verify() {
  if (getSizes().size() != 6) return emitOpError() << "needs six sizes: batch, heads, kv_heads, q_len, kv_len, dim";
  return verifyStep(*this, {getMaskShape() ? 7u : 6u}, {3});
}
LogicalResult CollectiveStep::verify() { return verifyStep(*this, {1}, {1, 2}); }
LogicalResult CopyStep::verify() {
  if (getBytes().size() == 2 && getBytes()[0] != getBytes()[1])
    return emitOpError() << "copies " << getBytes()[0] << " bytes to " << getBytes()[1];
  return verifyStep(*this, {1}, {1});
}
LogicalResult FillStep::verify() { return verifyStep(*this, {}, {1}); }
LogicalResult UpdateStep::verify() { return verifyStep(*this, {}, {}); }

} // namespace zero::planir

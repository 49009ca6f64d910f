//===- ZeroDialect.cpp - registration and verifiers of the zero dialect --------------------------===//
#include "compiler/zero/Zero.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/zero/ZeroDialect.cpp.inc"
#include "compiler/zero/ZeroEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/zero/ZeroAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/zero/ZeroOps.cpp.inc"

using namespace mlir;

namespace zero::state {

void ZeroDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/zero/ZeroOps.cpp.inc"
      >();
  registerAttributes();
}

void ZeroDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/zero/ZeroAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// The module and its programs
//===----------------------------------------------------------------------===//

int64_t worldOf(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto world = module ? module->getAttrOfType<IntegerAttr>(ZeroDialect::kWorld) : IntegerAttr();
  return world ? world.getInt() : 1;
}

int64_t ZeroDialect::microStepsOf(Operation *function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto role = function->getAttrOfType<StringAttr>(kRole), step = StringAttr::get(function->getContext(), "step");
  auto micro = module->getAttrOfType<IntegerAttr>(kAccumulate);
  return role == step && module->hasAttr(kVertical) && micro ? micro.getInt() : 1;
}

/// A program is one block over tensors of static shape.
static LogicalResult verifyProgram(FunctionOpInterface function) {
  if (function.isExternal() || !function.getFunctionBody().hasOneBlock())
    return function.emitError() << "program @" << function.getName() << " must be one block";
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
      return function.emitError() << "program @" << function.getName() << " takes and returns tensors of static shape, not " << type;
  return success();
}

LogicalResult ZeroDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto complain = [&](const Twine &expected) { return op->emitError() << "'" << name << "' is " << value << "; it must be " << expected; };
  auto text = [&](std::initializer_list<StringRef> allowed) {
    auto given = dyn_cast<StringAttr>(value);
    return given && llvm::is_contained(allowed, given.getValue());
  };
  auto number = [&](int64_t least, int64_t most) {
    auto given = dyn_cast<IntegerAttr>(value);
    return given && given.getType().isInteger(64) && given.getInt() >= least && given.getInt() <= most;
  };
  constexpr int64_t kMost = 1 << 30; // of ranks and of micro-steps; products with sizes in bytes stay far from overflowing
  if ((name == kWorld || name == kAccumulate) && !number(1, kMost)) return complain("an i64 from 1 to 2^30");
  if (name == kVertical && !(isa<UnitAttr>(value) && isa<ModuleOp>(op))) return complain("a unit, of the module");
  if (name == kStage && !number(0, 3)) return complain("an i64 from 0 to 3");
  if (name == kOptimizer && !text({"adamw", "sgd"})) return complain("adamw or sgd");
  if (name == kRole && !(isa<FunctionOpInterface>(op) && text({"step", "first", "middle", "last", "eval"})))
    return complain("step, first, middle, last or eval, of a function");
  if (name == kRole) return verifyProgram(cast<FunctionOpInterface>(op));
  return success();
}

//===----------------------------------------------------------------------===//
// Buckets and who names them
//===----------------------------------------------------------------------===//

LogicalResult BucketOp::verify() {
  if (getParameters().size() != getOffsets().size())
    return emitOpError() << getParameters().size() << " parameters but " << getOffsets().size() << " offsets";
  if (getParameters().empty()) return emitOpError() << "holds no parameter";
  int64_t elements = int64_t(getElements()), shard = int64_t(getShard()), world = worldOf(*this);
  if (shard <= 0 || elements % shard || elements / shard != world)
    return emitOpError() << elements << " elements do not split into shards of " << shard << " for " << world
                         << (world == 1 ? " rank" : " ranks");
  int64_t before = -1;
  for (int64_t offset : getOffsets()) {
    if (offset <= before || offset >= elements) return emitOpError() << "offsets must rise and lie below its " << elements << " elements";
    before = offset;
  }
  llvm::SmallSet<Role, 8> roles;
  for (auto tensor : getTensors().getAsRange<TensorAttr>()) {
    if (!tensor.getType().isF32() && !tensor.getType().isBF16() && !tensor.getType().isF16())
      return emitOpError() << "keeps " << tensor << "; its numbers are f32, bf16 or f16";
    if (!roles.insert(tensor.getRole()).second) return emitOpError() << "keeps its " << stringifyRole(tensor.getRole()) << " twice";
    if (!getTrainable() && tensor.getRole() != Role::master && tensor.getRole() != Role::compute)
      return emitOpError() << "is frozen and keeps its " << stringifyRole(tensor.getRole());
  }
  if (!getTrainable() && tensorOf(Role::master) && tensorOf(Role::compute))
    return emitOpError() << "is frozen and keeps its parameters twice; no update needs the master";
  return success();
}

TensorAttr BucketOp::tensorOf(Role role) {
  for (auto tensor : getTensors().getAsRange<TensorAttr>())
    if (tensor.getRole() == role) return tensor;
  return nullptr;
}

bool BucketOp::isSharded(Role role) {
  TensorAttr tensor = tensorOf(role);
  return tensor && tensor.getPart() == Part::shard && getShard() != getElements();
}

bool BucketOp::isResident(Role role) {
  TensorAttr tensor = tensorOf(role);
  return tensor && !isSharded(role) && tensor.getTier() == Tier::device;
}

bool BucketOp::isPublished() {
  return !isSharded(readRole()) &&
         llvm::any_of(getTensors().getAsRange<TensorAttr>(), [&](TensorAttr t) { return isMoment(t.getRole()) && isSharded(t.getRole()); });
}

/// The bucket named by `symbol`, or an error on `user`.
static BucketOp lookUp(Operation *user, FlatSymbolRefAttr symbol, SymbolTableCollection &tables) {
  auto bucket = tables.lookupNearestSymbolFrom<BucketOp>(user, symbol);
  if (!bucket) user->emitOpError() << "no zero.bucket is called " << symbol;
  return bucket;
}

/// Whether `value` has `elements` elements, or an error on `user`.
static LogicalResult expect(Operation *user, Value value, uint64_t elements, StringRef of, BucketOp bucket) {
  if (cast<RankedTensorType>(value.getType()).getNumElements() == int64_t(elements)) return success();
  return user->emitOpError() << "has " << value.getType() << " where the " << of << " of @" << bucket.getSymName() << " has " << elements
                             << " elements";
}

/// Whether `kernel` names the body of a kernel (the nn dialect's attribute marks it), or an error on `user`.
static LogicalResult expectKernel(Operation *user, FlatSymbolRefAttr kernel, SymbolTableCollection &tables) {
  Operation *function = tables.lookupNearestSymbolFrom(user, kernel);
  if (function && function->hasAttr("nn.kernel")) return success();
  return user->emitOpError() << "no kernel is called " << kernel;
}

LogicalResult ResidentOp::verifySymbolUses(SymbolTableCollection &tables) {
  BucketOp bucket = lookUp(*this, getBucketAttr(), tables);
  return bucket ? expect(*this, getWhole(), bucket.getElements(), "whole", bucket) : failure();
}

LogicalResult GatherOp::verifySymbolUses(SymbolTableCollection &tables) {
  BucketOp bucket = lookUp(*this, getBucketAttr(), tables);
  if (!bucket || failed(expect(*this, getWhole(), bucket.getElements(), "whole", bucket))) return failure();
  TensorAttr kept = bucket.tensorOf(bucket.readRole());
  Type type = getWhole().getType().getElementType();
  if (kept && (kept.getType() != type) != bool(getKernelAttr()))
    return emitOpError() << "brings " << type << " of parameters that @" << bucket.getSymName() << " keeps as " << kept.getType()
                         << (getKernelAttr() ? ", and rounds them" : ", and names no kernel that rounds them");
  return getKernelAttr() ? expectKernel(*this, getKernelAttr(), tables) : success();
}

LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  BucketOp bucket = lookUp(*this, getBucketAttr(), tables);
  if (!bucket || failed(expect(*this, getShard(), bucket.getShard(), "shard", bucket)) ||
      failed(expect(*this, getSum(), bucket.getShard(), "shard", bucket)) ||
      (getOnto() && failed(expect(*this, getOnto(), bucket.getShard(), "shard", bucket))))
    return failure();
  if (getFirst() && getOnto()) return emitOpError() << "is the first and adds to a sum";
  if (getFirst()) return success();
  if (!getKernelAttr()) return emitOpError() << "adds to " << (getOnto() ? "a sum" : "the accumulator") << " but names no kernel";
  return expectKernel(*this, getKernelAttr(), tables);
}

/// Whether `bucket` has one parameter, as a table's has, or an error on `user`.
static LogicalResult expectTable(Operation *user, BucketOp bucket) {
  if (bucket.getParameters().size() == 1) return success();
  return user->emitOpError() << "needs the bucket of one table; @" << bucket.getSymName() << " has " << bucket.getParameters().size()
                             << " parameters";
}

LogicalResult LookUpOp::verifySymbolUses(SymbolTableCollection &tables) {
  BucketOp bucket = lookUp(*this, getBucketAttr(), tables);
  if (!bucket || failed(expectTable(*this, bucket))) return failure();
  return expectKernel(*this, getKernelAttr(), tables);
}

LogicalResult AddRowsOp::verifySymbolUses(SymbolTableCollection &tables) {
  BucketOp bucket = lookUp(*this, getBucketAttr(), tables);
  if (!bucket || failed(expectTable(*this, bucket)) || failed(expect(*this, getShard(), bucket.getShard(), "shard", bucket)) ||
      failed(expect(*this, getSum(), bucket.getShard(), "shard", bucket)))
    return failure();
  return expectKernel(*this, getKernelAttr(), tables);
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &tables) {
  BucketOp bucket = lookUp(*this, getBucketAttr(), tables);
  if (!bucket) return failure();
  int64_t part = bucket.elementsOf(getWhole() ? Part::whole : Part::shard), count = getGradient().getType().getNumElements();
  int64_t begin = int64_t(getBegin());
  if (begin < 0 || begin > part || count > part - begin)
    return emitOpError() << "updates elements " << begin << " to " << begin + count << " of the " << (getWhole() ? "whole" : "shard")
                         << " of @" << bucket.getSymName() << ", which has " << part;
  return expectKernel(*this, getKernelAttr(), tables);
}

LogicalResult UpdateRowsOp::verifySymbolUses(SymbolTableCollection &tables) {
  for (auto name : getBuckets().getAsRange<FlatSymbolRefAttr>()) {
    BucketOp bucket = lookUp(*this, name, tables);
    if (!bucket || failed(expectTable(*this, bucket))) return failure();
  }
  return expectKernel(*this, getKernelAttr(), tables);
}

LogicalResult WriteRowsOp::verifySymbolUses(SymbolTableCollection &tables) {
  BucketOp bucket = lookUp(*this, getBucketAttr(), tables);
  if (!bucket || failed(expectTable(*this, bucket))) return failure();
  TensorAttr tensor = bucket.tensorOf(getRole());
  if (tensor && tensor.getType() == cast<ShapedType>(getRows().getType()).getElementType()) return success();
  return emitOpError() << "writes rows of " << getRows().getType() << ", but @" << bucket.getSymName() << " keeps "
                       << (tensor ? "numbers of another type there" : "no such tensor");
}

LogicalResult PublishOp::verifySymbolUses(SymbolTableCollection &tables) { return success(bool(lookUp(*this, getBucketAttr(), tables))); }

//===----------------------------------------------------------------------===//
// Parts and the whole
//===----------------------------------------------------------------------===//

LogicalResult ViewOp::verify() {
  int64_t whole = getWhole().getType().getNumElements(), size = cast<ShapedType>(getResult().getType()).getNumElements();
  int64_t offset = int64_t(getOffset());
  if (offset < 0 || size > whole || offset > whole - size)
    return emitOpError() << "elements " << offset << " to " << offset + size << " of a buffer of " << whole;
  if (getWhole().getType().getElementType() != cast<ShapedType>(getResult().getType()).getElementType())
    return emitOpError() << "changes the element type";
  return success();
}

/// `whole` is one shard per rank.
static LogicalResult verifySplit(Operation *op, RankedTensorType whole, RankedTensorType shard) {
  int64_t world = worldOf(op);
  if (shard.getNumElements() > 0 && whole.getNumElements() / shard.getNumElements() == world &&
      whole.getNumElements() % shard.getNumElements() == 0 && whole.getElementType() == shard.getElementType())
    return success();
  return op->emitOpError() << whole << " is not " << world << (world == 1 ? " shard of " : " shards of ") << shard;
}

LogicalResult OwnShardOp::verify() { return verifySplit(*this, getWhole().getType(), getShard().getType()); }
LogicalResult ReduceScatterOp::verify() {
  Type travels = getWhole().getType().getElementType(), sum = getShard().getType().getElementType();
  if (!sum.isF32() || !(travels.isF32() || travels.isBF16()))
    return emitOpError() << "sums " << travels << " to " << sum << "; sums are f32, of f32 or bf16";
  return verifySplit(*this, getWhole().getType().clone(sum), getShard().getType());
}
LogicalResult AllGatherOp::verify() { return verifySplit(*this, getWhole().getType(), getShard().getType()); }

LogicalResult PackOp::verify() {
  if (getInputs().size() != getOffsets().size())
    return emitOpError() << getInputs().size() << " inputs but " << getOffsets().size() << " offsets";
  int64_t end = 0;
  for (auto [input, offset] : llvm::zip(getInputs(), getOffsets())) {
    if (cast<ShapedType>(input.getType()).getElementType() != getResult().getType().getElementType())
      return emitOpError() << "the input at " << offset << " is " << input.getType() << ", of another element type";
    if (offset < end) return emitOpError() << "the input at " << offset << " lies inside the one before, which ends at " << end;
    end = offset + cast<ShapedType>(input.getType()).getNumElements();
  }
  if (end > getResult().getType().getNumElements())
    return emitOpError() << "inputs end at " << end << ", beyond the buffer's " << getResult().getType().getNumElements() << " elements";
  return success();
}

} // namespace zero::state

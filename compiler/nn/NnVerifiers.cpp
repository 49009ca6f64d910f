//===- NnVerifiers.cpp - what operations and attributes of the nn dialect must be ------------------===//
// Whatever passes here, no later pass or kernel may stumble over. Shapes that follow from the operands are checked by
// their inference (NnShapes.cpp).
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {

//===----------------------------------------------------------------------===//
// Parameters and random numbers
//===----------------------------------------------------------------------===//

/// One entry of a parameter's `aliases`.
static LogicalResult verifyAlias(ParameterOp op, Attribute entry) {
  auto fields = dyn_cast<DictionaryAttr>(entry);
  if (!fields || !fields.getAs<StringAttr>("name")) return op.emitOpError() << "has the alias " << entry << ", which lacks a name";
  auto holds = [&](StringRef name, auto test) { return !fields.get(name) || test(fields.get(name)); };
  auto isNumber = [](Attribute a) { return isa<IntegerAttr>(a) && cast<IntegerAttr>(a).getType().isInteger(64); };
  bool good = holds("transposed", [](Attribute a) { return isa<BoolAttr>(a); }) &&
              holds("file", [](Attribute a) { return isa<StringAttr>(a); }) && holds("offset", isNumber) && holds("bytes", isNumber) &&
              holds("stored", [](Attribute a) { return isa<TypeAttr>(a) && isa<FloatType>(cast<TypeAttr>(a).getValue()); });
  if (good) return success();
  return op.emitOpError() << "has the alias " << entry << "; its fields are name, transposed, file, offset, bytes and stored";
}

/// A tile lies inside the whole parameter it names.
static LogicalResult verifyTile(ParameterOp op) {
  auto whole = op.getWhole(), begin = op.getBegin();
  if (!op.getTileOf() && !whole && !begin) return success();
  auto type = cast<ShapedType>(op.getType());
  if (!op.getTileOf() || !whole || !begin || int64_t(whole->size()) != type.getRank() || whole->size() != begin->size())
    return op.emitOpError() << "is a tile and says of what (`tile_of`), of which shape (`whole`) and where it begins, or none of these";
  for (auto [first, size, extent] : llvm::zip(*begin, type.getShape(), *whole))
    if (first < 0 || first > extent - size) return op.emitOpError() << "of " << type << " lies outside '" << *op.getTileOf() << "'";
  return success();
}

LogicalResult ParameterOp::verify() {
  if (int64_t(getOffset()) < 0 || int64_t(getBytes()) < 0) return emitOpError() << "lies at a negative offset or has a negative size";
  if (auto stored = getStored(); stored && !isa<FloatType>(*stored))
    return emitOpError() << "is stored as " << *stored << ", which is no float";
  if (auto init = getInit(); init && *init != "zeros" && *init != "ones" && *init != "normal")
    return emitOpError() << "starts from \"" << *init << "\", which is not zeros, ones or normal";
  if (ArrayAttr aliases = getAliasesAttr())
    for (Attribute entry : aliases)
      if (failed(verifyAlias(*this, entry))) return failure();
  return verifyTile(*this);
}

/// What nn.random and nn.dropout say of the stream they draw from.
template <typename Op> static LogicalResult verifyStream(Op op) {
  if (typeOf(op.getSeed()).getShape() != ArrayRef<int64_t>{2})
    return op.emitOpError() << "needs a seed of two numbers, not " << op.getSeed().getType();
  if (int64_t(op.getSamples()) < 0)
    return op.emitOpError() << "covers " << int64_t(op.getSamples()) << " samples; it is at least one, or 0 for all of them";
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  if (!(smoothing() >= 0 && smoothing() <= 1)) return emitOpError() << "smooths labels by " << smoothing() << ", which is not in [0, 1]";
  return success();
}

LogicalResult RandomOp::verify() { return verifyStream(*this); }

LogicalResult DropoutOp::verify() {
  float rate = getRate().convertToFloat();
  if (!(rate >= 0 && rate <= 1)) return emitOpError() << "drops at a rate of " << rate << ", which is not in [0, 1]";
  return verifyStream(*this);
}

//===----------------------------------------------------------------------===//
// Movement and selection
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  int64_t rank = typeOf(getResult()).getRank(), dim = int64_t(getDim());
  if (dim < 0 || dim >= rank) return emitOpError() << "dimension " << dim << " of a tensor of rank " << rank;
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (int64_t(getDims().size()) != from.getRank())
    return emitOpError() << "names " << getDims().size() << " dimensions for an operand of rank " << from.getRank();
  int64_t before = -1;
  for (auto [i, d] : llvm::enumerate(getDims())) {
    if (d <= before || d >= to.getRank()) return emitOpError() << "dims must rise and lie below the result's rank " << to.getRank();
    if (from.getDimSize(i) != 1 && from.getDimSize(i) != to.getDimSize(d))
      return emitOpError() << "dimension " << i << " of size " << from.getDimSize(i) << " cannot become " << to.getDimSize(d);
    before = d;
  }
  if (from.getElementType() != to.getElementType()) return emitOpError() << "changes the element type";
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return emitOpError() << from << " cannot be seen as " << to;
  return success();
}

LogicalResult PadOp::verify() {
  if (isa<FloatAttr, IntegerAttr>(getValue()) && getValue().getType() == elementOf(getInput())) return success();
  return emitOpError() << "surrounds " << getInput().getType() << " with " << getValue();
}

LogicalResult TakeAlongOp::verify() {
  auto in = typeOf(getInput()), indices = typeOf(getIndices()), expected = withShape(getInput(), indices.getShape());
  if (in.getRank() == 0 || indices.getShape() != in.getShape().drop_back() || typeOf(getResult()) != expected)
    return emitOpError() << "takes one element per row: " << in << " by " << indices << " gives " << expected;
  return success();
}

LogicalResult ScatterAddOp::verify() {
  auto indices = typeOf(getIndices()), updates = typeOf(getUpdates()), to = typeOf(getResult());
  int64_t lead = indices.getRank();
  if (updates.getRank() < lead || updates.getShape().take_front(lead) != indices.getShape() ||
      to.getElementType() != updates.getElementType() || to.getRank() != updates.getRank() - lead + 1 ||
      to.getShape().drop_front() != updates.getShape().drop_front(lead))
    return emitOpError() << updates << " by " << indices << " cannot be summed into " << to;
  return success();
}

//===----------------------------------------------------------------------===//
// Rows and attention
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  if (typeOf(getInput()).getRank() == 0) return emitOpError() << "needs a last dimension";
  return success();
}

LogicalResult AttentionGradOp::verify() {
  // The forward says whether q, k, v and the mask fit together, and what comes of them.
  SmallVector<Value> operands{getQ(), getK(), getV()};
  if (getMask()) operands.push_back(getMask());
  SmallVector<Type> forward;
  AttentionOp::Properties properties;
  properties.scale = getScaleAttr();
  if (failed(AttentionOp::inferReturnTypes(getContext(), getLoc(), operands, nullptr, OpaqueProperties(&properties), {}, forward)))
    return failure();
  if (getOut().getType() != forward[0] || getDout().getType() != forward[0] || getLse().getType() != forward[1])
    return emitOpError() << "takes the results of the forward and the gradient of the first: " << forward[0] << ", " << forward[1]
                         << " and " << forward[0];
  if (getDq().getType() != getQ().getType() || getDk().getType() != getK().getType() || getDv().getType() != getV().getType())
    return emitOpError() << "gives gradients of the types of q, k and v";
  return success();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult verifyTensorFunction(func::FuncOp function) {
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
      return function.emitError() << "function @" << function.getName() << " takes and returns tensors of static shape, not " << type;
  if (!function.isExternal() && !function.getBody().hasOneBlock())
    return function.emitError() << "function @" << function.getName() << " must be one block";
  return success();
}

/// Pairs [result, operand] within the function's signature.
static LogicalResult verifyInplace(func::FuncOp kernel, Attribute value) {
  auto pairs = dyn_cast<ArrayAttr>(value);
  bool good = bool(pairs);
  auto number = [](Attribute a, unsigned below) {
    auto n = dyn_cast<IntegerAttr>(a);
    return n && n.getType().isInteger(64) && n.getInt() >= 0 && n.getInt() < int64_t(below);
  };
  if (good)
    for (Attribute entry : pairs) {
      auto pair = dyn_cast<ArrayAttr>(entry);
      good &= pair && pair.size() == 2 && number(pair[0], kernel.getNumResults()) && number(pair[1], kernel.getNumArguments());
    }
  if (good) return success();
  return kernel.emitError() << "kernel @" << kernel.getName() << " has '" << NnDialect::kInplaceAttr << "' = " << value
                            << "; it lists pairs [result, operand] that the kernel has";
}

LogicalResult NnDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kKernelAttr && attribute.getName() != kInplaceAttr) return success();
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function) return op->emitError() << "'" << attribute.getName().getValue() << "' belongs to a function";
  return attribute.getName() == kKernelAttr ? verifyTensorFunction(function) : verifyInplace(function, attribute.getValue());
}

LogicalResult NnDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto complain = [&](const Twine &what) {
    return op->emitError() << "argument " << argument << " has '" << name << "' = " << attribute.getValue() << ", " << what;
  };
  if (name == kNameAttr && !isa<StringAttr>(attribute.getValue())) return complain("which is no text");
  if (name == kRoleAttr) {
    auto role = dyn_cast<StringAttr>(attribute.getValue());
    if (!role || !llvm::is_contained({"data", "shared", "labels", "loss_scale", "seed", "hyper"}, role.getValue()))
      return complain("which is not data, shared, labels, loss_scale, seed or hyper");
  }
  if (name == kSymbolsAttr) {
    auto symbols = dyn_cast<ArrayAttr>(attribute.getValue());
    auto type = dyn_cast<RankedTensorType>(cast<func::FuncOp>(op).getArgumentTypes()[argument]);
    if (!symbols || !type || int64_t(symbols.size()) != type.getRank() || !llvm::all_of(symbols, llvm::IsaPred<StringAttr>))
      return complain("which is no text for each dimension");
  }
  if (name == kLimitAttr)
    if (auto limit = dyn_cast<IntegerAttr>(attribute.getValue()); !limit || !limit.getType().isInteger(64) || limit.getInt() < 1)
      return complain("which is no positive i64");
  return success();
}

} // namespace zero::nn

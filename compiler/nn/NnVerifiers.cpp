//===- NnVerifiers.cpp - what parameters and attributes of the nn dialect must be ------------------===//
// Whatever passes here, no later pass or kernel may stumble over. What other operations must be is said in the file that implements each.
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {

//===----------------------------------------------------------------------===//
// Parameters
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
  if (name == kClassesAttr) {
    auto classes = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!classes || classes.empty() || classes.size() > 2 || classes[0] < 1)
      return complain("which is no positive number of classes, alone or with the label that is ignored");
  }
  return success();
}

} // namespace zero::nn

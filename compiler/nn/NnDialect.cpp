//===- NnDialect.cpp - registration and symbol checks of the nn dialect --------------------------===//
#include "compiler/nn/Nn.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "compiler/nn/NnDialect.cpp.inc"
#include "compiler/nn/NnEnums.cpp.inc"
#include "compiler/nn/NnInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/nn/NnOps.cpp.inc"

using namespace mlir;

namespace zero::nn {

void NnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/nn/NnOps.cpp.inc"
      >();
}

Operation *NnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getShapedType() != type) return nullptr;
  return builder.create<ConstantOp>(loc, elements);
}

/// The parameter named by `symbol`, or an error on `user`.
static ParameterOp lookUp(Operation *user, FlatSymbolRefAttr symbol, SymbolTableCollection &tables) {
  auto parameter = tables.lookupNearestSymbolFrom<ParameterOp>(user, symbol);
  if (!parameter) user->emitOpError() << "no nn.parameter is called " << symbol;
  return parameter;
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto parameter = lookUp(*this, getParameterAttr(), tables);
  if (!parameter) return failure();
  auto kept = cast<ShapedType>(parameter.getType());
  Type read = cast<ShapedType>(getType()).getElementType();
  bool rounded = kept.getElementType().isF32() && (read.isBF16() || read.isF16()) && kept.clone(read) == getType();
  if (kept != getType() && !rounded)
    return emitOpError() << "reads " << getType() << " but " << getParameterAttr() << " is " << parameter.getType();
  return success();
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto parameter = lookUp(*this, getParameterAttr(), tables);
  if (!parameter) return failure();
  if (!parameter.getTrainable()) return emitOpError() << getParameterAttr() << " is not trainable";
  if (cast<ShapedType>(parameter.getType()).getShape() != getValue().getType().getShape())
    return emitOpError() << "gradient of shape " << getValue().getType() << " for " << parameter.getType();
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel || !kernel->hasAttr(NnDialect::kKernelAttr)) return emitOpError() << "no kernel is called " << getKernelAttr();
  if (kernel.getArgumentTypes() != getOperandTypes() || kernel.getResultTypes() != getResultTypes())
    return emitOpError() << "types differ from those of " << getKernelAttr() << ": " << kernel.getFunctionType();
  return success();
}

} // namespace zero::nn

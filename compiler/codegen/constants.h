//===- constants.h - constants of a kernel's function, each once ------------------------------------===//
// Loops ask for the same bounds, steps and coefficients again and again; as an operation of its own each would be lowered by itself.
#pragma once
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

namespace zero::codegen {

class Constants {
public:
  Constants(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  /// It stands at the beginning of the function that is being built, so that all of it may use it.
  mlir::Value operator()(mlir::TypedAttr value) {
    mlir::Value &known = values[value];
    if (known) return known;
    mlir::Operation *function = b.getInsertionBlock()->getParentOp();
    while (!mlir::isa<mlir::FunctionOpInterface>(function)) function = function->getParentOp();
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function->getRegion(0).front());
    return known = b.create<mlir::arith::ConstantOp>(loc, value);
  }

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
  llvm::DenseMap<mlir::Attribute, mlir::Value> values;
};

} // namespace zero::codegen

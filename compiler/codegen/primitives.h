//===- primitives.h - types and functions of the nn dialect in a program ---------------------------===//
#pragma once
#include "compiler/codegen/program.h"

namespace zero::codegen {

Scalar scalarOf(mlir::Type element);
/// Of a tensor's elements.
Scalar scalarOf(mlir::Value tensor);
/// What a stored type is computed in: half precision in single.
Scalar computed(Scalar stored);
/// The function an operation applies to each element; nothing if it does something else.
std::optional<Fn> functionOf(mlir::Operation *op);
double toDouble(llvm::APFloat value);

} // namespace zero::codegen

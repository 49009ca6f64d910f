//===- primitives.h - types and numbers of the nn dialect in a program -----------------------------===//
#pragma once
#include "compiler/codegen/program.h"

namespace zero::codegen {

Scalar scalarOf(mlir::Type element);
/// Of a tensor's elements.
Scalar scalarOf(mlir::Value tensor);
/// What a stored type is computed in: half precision in single.
Scalar computed(Scalar stored);
double toDouble(llvm::APFloat value);

} // namespace zero::codegen

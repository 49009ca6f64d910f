//===- attention_kernels.h - attention as what one thread of a GPU does -----------------------------------===//
#pragma once
#include "compiler/codegen/ptx/division.h"
#include "mlir/IR/Builders.h"

namespace zero::codegen {

/// The function of a program of kind Tiles, at the builder's insertion point.
void emitAttention(const Program &program, const Division &division, mlir::OpBuilder &b, mlir::Location loc);

} // namespace zero::codegen

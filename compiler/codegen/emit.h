//===- emit.h - program of a kernel to vector code -----------------------------------------------===//
#pragma once
#include "compiler/codegen/program.h"
#include "mlir/IR/Builders.h"

namespace zero::codegen {

/// Appends `func.func @NAME(inputs…, outputs…, begin, end)` over flat memrefs to the module: scf loops around arith,
/// math and vector operations on `lanes` f32 at once.
void emitProgram(const Program &program, mlir::ModuleOp module, unsigned lanes, mlir::Location loc);

} // namespace zero::codegen

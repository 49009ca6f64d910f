//===- emit_gpu.h - program of a kernel to what one thread of a GPU does ----------------------------------===//
#pragma once
#include "compiler/codegen/ptx/division.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero::codegen {

/// Appends `func.func @NAME(inputs…, outputs…)` over flat memrefs to the module, and its shared memory: what each thread of the division's
/// grid runs.
void emitForGpu(const Program &program, const Division &division, mlir::ModuleOp module, mlir::Location loc);

} // namespace zero::codegen

//===- apart.h - every buffer at bytes of its own -----------------------------------------------------===//
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace zero::place {

/// Gives the buffers of a module, which have live ranges, offsets at which no two share a byte, in no time. The waits that follow are those
/// of the data; sharing bytes, as plan-assign-offsets has it, adds others.
void placeApart(mlir::ModuleOp module);

} // namespace zero::place

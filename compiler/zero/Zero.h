//===- Zero.h - the zero dialect ---------------------------------------------------------------===//
// Where model state lives and how it moves; see ZeroOps.td.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/zero/ZeroDialect.h.inc"
#include "compiler/zero/ZeroEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/zero/ZeroAttrs.h.inc"
#define GET_OP_CLASSES
#include "compiler/zero/ZeroOps.h.inc"

namespace zero::state {
/// Ranks that the module around `op` was sharded for; 1 before that.
int64_t worldOf(mlir::Operation *op);
/// Whether it holds the parameters themselves.
inline bool isParameter(Role role) { return role == Role::master || role == Role::compute; }
/// Whether the optimizer keeps it beside the parameters.
inline bool isMoment(Role role) { return role == Role::first_moment || role == Role::second_moment || role == Role::momentum; }
} // namespace zero::state

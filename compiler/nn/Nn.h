//===- Nn.h - the nn dialect -------------------------------------------------------------------===//
// Tensor mathematics of a transformer; see NnBase.td for what may stand in it.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace zero::nn {
/// Bytes of a tensor in memory; an i1 takes one byte.
inline uint64_t bytesOf(mlir::ShapedType type) { return uint64_t(type.getNumElements()) * ((type.getElementTypeBitWidth() + 7) / 8); }

/// Operations that compute each result element from the operand elements at the same index.
template <typename ConcreteType> struct Elementwise : mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {};
} // namespace zero::nn

#include "compiler/nn/NnDialect.h.inc"
#include "compiler/nn/NnEnums.h.inc"
#include "compiler/nn/NnInterfaces.h.inc"
#define GET_OP_CLASSES
#include "compiler/nn/NnOps.h.inc"

namespace zero::nn {
/// Fails with an error unless the function takes and returns tensors of static shape and its body, if it has one, is one block.
mlir::LogicalResult verifyTensorFunction(mlir::func::FuncOp function);
} // namespace zero::nn

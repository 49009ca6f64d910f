//===- Nn.h - the nn dialect -------------------------------------------------------------------===//
// Tensor mathematics of a transformer; see NnBase.td for what may stand in it.
#pragma once
#include "compiler/nn/reader.h"
#include "compiler/nn/scalar.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallBitVector.h"

namespace zero::nn {
/// Numbers of two bytes. What computes with them does so in f32; sums of their products, and what is kept of softmax, stay f32.
inline bool isNarrow(mlir::Type type) { return type.isBF16() || type.isF16(); }
/// Bytes of a tensor in memory; an i1 takes one byte.
inline uint64_t bytesOf(mlir::ShapedType type) { return uint64_t(type.getNumElements()) * ((type.getElementTypeBitWidth() + 7) / 8); }

struct Build;  // build.h
struct Rows;   // rows.h
struct Tensor; // eval/eval.h

// Marks that passes ask for with `hasTrait`; NnBase.td says what each means.
template <typename ConcreteType> struct Elementwise : mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {};
template <typename ConcreteType> struct RowWise : mlir::OpTrait::TraitBase<ConcreteType, RowWise> {};
template <typename ConcreteType> struct Movement : mlir::OpTrait::TraitBase<ConcreteType, Movement> {};
template <typename ConcreteType> struct Accumulates : mlir::OpTrait::TraitBase<ConcreteType, Accumulates> {};
template <typename ConcreteType> struct Draws : mlir::OpTrait::TraitBase<ConcreteType, Draws> {};
template <typename ConcreteType> struct NoGradient : mlir::OpTrait::TraitBase<ConcreteType, NoGradient> {};
} // namespace zero::nn

#include "compiler/nn/NnDialect.h.inc"
#include "compiler/nn/NnEnums.h.inc"
#include "compiler/nn/NnInterfaces.h.inc"
#define GET_OP_CLASSES
#include "compiler/nn/NnOps.h.inc"

namespace zero::nn {
/// What one evaluation of a formula takes.
struct FormulaSize {
  unsigned functions = 0;
  unsigned transcendentals = 0; // of them those that are made of polynomials (isTranscendental)
  unsigned work() const { return functions - transcendentals + transcendentals * kLongWork; }
};
FormulaSize sizeOf(PointwiseOpInterface op);

/// Fails with an error unless the function takes and returns tensors of static shape and its body, if it has one, is one block.
mlir::LogicalResult verifyTensorFunction(mlir::func::FuncOp function);
} // namespace zero::nn

//===- kernels.h - the pieces of the interpreter, one per family of operations -------------------===//
// Shared by the files of this folder only. Each function fills `results`, which arrive zero-filled and with their
// types; f16 and bf16 have been widened to f32 by the caller except where bytes are only moved.
#pragma once
#include "compiler/nn/eval/eval.h"

namespace zero::nn::eval {

using Operands = llvm::ArrayRef<const Tensor *>;
using Results = llvm::MutableArrayRef<Tensor>;

/// Calls `body` with a value of the C++ type that holds one element of `type`.
template <typename Body> mlir::LogicalResult withElement(mlir::Type type, Body body) {
  if (type.isF32()) return body(float());
  if (type.isF64()) return body(double());
  if (type.isInteger(64)) return body(int64_t());
  if (type.isInteger(32)) return body(int32_t());
  return body(uint8_t()); // i1
}

/// The same for the element types that widening leaves of the floats.
template <typename Body> mlir::LogicalResult withFloat(mlir::Type type, Body body) { return type.isF64() ? body(double()) : body(float()); }

/// Row-major strides in elements.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);

/// dst[i · dstStrides] = src[i · srcStrides] for every index of `shape`; `width` is the size of an element in bytes.
void copyStrided(const char *src, llvm::ArrayRef<int64_t> srcStrides, char *dst, llvm::ArrayRef<int64_t> dstStrides,
                 llvm::ArrayRef<int64_t> shape, size_t width);

/// `input` with its dimensions permuted.
Tensor transposed(const Tensor &input, llvm::ArrayRef<int64_t> perm);

mlir::LogicalResult elementwise(mlir::Operation *op, Operands in, Results out);
mlir::LogicalResult movement(mlir::Operation *op, Operands in, Results out);
mlir::LogicalResult reduction(mlir::Operation *op, Operands in, Results out);
mlir::LogicalResult composite(mlir::Operation *op, Operands in, Results out);
mlir::LogicalResult product(mlir::Operation *op, Operands in, Results out);

} // namespace zero::nn::eval

//===- kernels.h - what implementations of operations need to be evaluated -------------------------===//
// For the interpreter and for the `evaluate` of each operation: it fills `results`, which arrive zero-filled and with their
// types; f16 and bf16 have been widened to f32 by the caller except where bytes are only moved.
#pragma once
#include "compiler/nn/eval/eval.h"
#include <cmath>

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

/// Bytes of one element.
inline size_t widthOf(const Tensor &t) { return (t.type.getElementTypeBitWidth() + 7) / 8; }

/// The index tensor as i64, or an error on `op` where one lies outside [0, bound).
mlir::FailureOr<llvm::SmallVector<int64_t>> indicesWithin(mlir::Operation *op, const Tensor &indices, int64_t bound);

inline double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

/// Row-major strides in elements.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);

/// dst[i · dstStrides] = src[i · srcStrides] for every index of `shape`; `width` is the size of an element in bytes.
void copyStrided(const char *src, llvm::ArrayRef<int64_t> srcStrides, char *dst, llvm::ArrayRef<int64_t> dstStrides,
                 llvm::ArrayRef<int64_t> shape, size_t width);

/// `input` with its dimensions permuted.
Tensor transposed(const Tensor &input, llvm::ArrayRef<int64_t> perm);

/// Along the last dimension; 1 where there is none.
inline int64_t columnsOf(const Tensor &t) { return t.type.getRank() == 0 ? 1 : t.shape().back(); }

/// The formula of an elementwise operation for all elements. Operands of f16 and bf16 have been widened; so is the result.
mlir::FailureOr<Tensor> pointwise(PointwiseOpInterface op, Operands in);

} // namespace zero::nn::eval

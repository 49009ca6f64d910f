//===- eval.h - reference interpreter of the nn dialect on host tensors --------------------------===//
// What an operation means, in plain C++: the reader folds constants with it, tests compare passes and
// generated kernels with it. Float reductions and products accumulate in double; integers and booleans are
// exact; f16 and bf16 are computed in f32 and rounded once per operation.
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace zero::nn {

/// A dense row-major tensor in host memory. Element layout is the type's own (f16/bf16: two bytes), an i1 takes
/// one byte that is 0 or 1.
struct Tensor {
  mlir::RankedTensorType type;
  std::vector<char> bytes;

  Tensor() = default;
  /// Zero-filled.
  explicit Tensor(mlir::RankedTensorType type) : type(type), bytes(bytesOf(type), 0) {}

  int64_t size() const { return type.getNumElements(); }
  mlir::Type elementType() const { return type.getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }

  /// The elements as T: float, double, int64_t, int32_t, uint8_t (i1), uint16_t (bits of f16 and bf16).
  template <typename T> llvm::MutableArrayRef<T> data() { return {reinterpret_cast<T *>(bytes.data()), bytes.size() / sizeof(T)}; }
  template <typename T> llvm::ArrayRef<T> data() const { return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)}; }

  /// One element of any type, for small tensors and tests (an i64 beyond 2^53 loses bits).
  double at(int64_t index) const;
  /// One element as an integer, by the rule of nn.cast: exact where it is one, saturated where it is out of range.
  int64_t integer(int64_t index) const;
  /// All of them, in row-major order: much faster than one by one.
  std::vector<int64_t> integers() const;
  void set(int64_t index, double value);

  /// From DenseElementsAttr (splat or not, i1 packed or not) or DenseResourceElementsAttr; fails on another
  /// kind of attribute or a resource whose size does not match its type.
  static mlir::FailureOr<Tensor> fromAttribute(mlir::ElementsAttr attribute);
  /// `values` in row-major order, converted to the element type.
  static Tensor fromValues(mlir::RankedTensorType type, llvm::ArrayRef<double> values);

  /// A DenseElementsAttr where all elements are equal or the tensor is small, else a DenseResourceElementsAttr
  /// (big dense attributes are hashed and kept by the context for ever).
  mlir::ElementsAttr toAttribute(size_t resourceFrom = 64 * 1024) const;

  /// The same elements in another element type, by the rule of nn.cast.
  Tensor cast(mlir::Type elementType) const;

  /// Dimensions along which nothing changes are reduced to one.
  void dropEqual();
};

/// Results of one operation of the nn dialect, from its operands in order. Emits an error on `op` and fails where
/// an index is out of range. nn.get, nn.gradient and nn.launch need a module: see evaluateFunction.
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluate(mlir::Operation *op, llvm::ArrayRef<const Tensor *> operands);

/// Whether `evaluate` can compute this operation from its operands alone.
bool canEvaluate(mlir::Operation *op);

using ParameterLookup = std::function<mlir::FailureOr<Tensor>(ParameterOp)>;
using GradientSink = std::function<void(ParameterOp, const Tensor &)>;

/// Results of a whole function with one block: nn.get asks `parameters`, nn.gradient tells `gradients` (either may
/// be empty where the function has none of these), nn.launch runs the kernel's function. Tensors are dropped after
/// their last use.
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateFunction(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> inputs,
                                                            const ParameterLookup &parameters = {}, const GradientSink &gradients = {});

/// The values a parameter starts with: read from its file (relative to `folder`), or made by its `init` rule with
/// a generator that depends on `seed` and the parameter's name. Fails with an error on the parameter.
mlir::FailureOr<Tensor> loadParameter(ParameterOp parameter, llvm::StringRef folder, uint64_t seed = 0);

} // namespace zero::nn

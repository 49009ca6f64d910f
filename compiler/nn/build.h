//===- build.h - short ways to write nn operations ----------------------------------------------===//
// Gradient rules and decompositions are formulas; these helpers let them be read as such. Arithmetic helpers
// drop what splat constants make superfluous (x * 1, x + 0), so that a loss gradient of 1 leaves no trace.
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include <optional>

namespace zero::nn {

mlir::RankedTensorType typeOf(mlir::Value v);
mlir::Type elementOf(mlir::Value v);
bool isFloat(mlir::Value v);
/// The type of `v` with other sizes, or with another element type.
mlir::RankedTensorType withShape(mlir::Value v, llvm::ArrayRef<int64_t> shape);
mlir::RankedTensorType withElement(mlir::Value v, mlir::Type element);

/// The number every element of `v` has, seen through broadcasts and reshapes; none when it is no such constant.
std::optional<double> splatOf(mlir::Value v);
/// Whether `v` depends on compile-time constants alone, seen through movement operations.
bool isConstant(mlir::Value v);

/// Operations at one place of the program. `b` and `loc` as everywhere in MLIR.
struct Build {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value splat(mlir::RankedTensorType type, double number);
  mlir::Value like(mlir::Value v, double number) { return splat(typeOf(v), number); }
  mlir::Value iota(mlir::RankedTensorType type, int64_t dim);

  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, double y) { return add(x, like(x, y)); }
  mlir::Value mul(mlir::Value x, double y) { return mul(x, like(x, y)); }
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  mlir::Value exp(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value rsqrt(mlir::Value x);
  mlir::Value sigmoid(mlir::Value x);
  mlir::Value compare(Predicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// Convert the element type; `v` itself when it has it already.
  mlir::Value cast(mlir::Value v, mlir::Type element);

  mlir::Value reshape(mlir::Value v, llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Value v, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> steps);
  /// Surround with zeros.
  mlir::Value pad(mlir::Value v, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high, llvm::ArrayRef<int64_t> interior);
  mlir::Value broadcast(mlir::Value v, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);
  /// One value per row (all dimensions but the last) repeated along `columns` entries.
  mlir::Value rows(mlir::Value v, int64_t columns);
  /// One value per column repeated for every row of `shape`.
  mlir::Value columns(mlir::Value v, llvm::ArrayRef<int64_t> shape);
  /// One number (of any rank) repeated to `shape`.
  mlir::Value everywhere(mlir::Value v, llvm::ArrayRef<int64_t> shape);

  mlir::Value reduce(ReductionKind kind, mlir::Value v, llvm::ArrayRef<int64_t> dims);
  /// Sum, mean or maximum over the last dimension; sum over all dimensions but the last; sum over everything.
  mlir::Value sumLast(mlir::Value v);
  mlir::Value meanLast(mlir::Value v);
  mlir::Value maxLast(mlir::Value v);
  mlir::Value sumRows(mlir::Value v);
  mlir::Value sumAll(mlir::Value v);
};

} // namespace zero::nn

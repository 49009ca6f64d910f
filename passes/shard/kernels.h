//===- kernels.h - the kernels of model state, each made once per shape --------------------------===//
#pragma once
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/train/optimizer.h"

namespace zero::shard {

/// Of the name of a kernel whose parameters are of this type.
std::string suffixOf(mlir::Type type);

/// Names of nn.kernel functions of a module, which are added where they are missing; [rows, columns] is how a kernel sees
/// a flat buffer. Holds a table of the module's symbols: there are many buckets, and many parameters to search among.
class StateKernels {
public:
  explicit StateKernels(mlir::ModuleOp module) : module(module), symbols(module) {}

  mlir::FlatSymbolRefAttr update(train::OptimizerKind kind, int64_t rows, int64_t columns, const train::UpdateForm &form);
  mlir::FlatSymbolRefAttr accumulate(int64_t rows, int64_t columns);
  /// Of parameters that are read as `type`.
  mlir::FlatSymbolRefAttr round(mlir::Type type, int64_t rows, int64_t columns);
  mlir::FlatSymbolRefAttr sumSquares(int64_t rows, int64_t columns);
  /// tensor<n> -> tensor<1>, the sum of all.
  mlir::FlatSymbolRefAttr sum(int64_t n);

  // Rows of a table, of which this rank's shard is [rows, columns] (row_kernels.cpp).
  /// Indices -> the same as f32, flat.
  mlir::FlatSymbolRefAttr indices(mlir::RankedTensorType type);
  /// Of `n` indices; see zero.look_up. The shard is of `type`.
  mlir::FlatSymbolRefAttr lookUp(int64_t rows, int64_t columns, int64_t n, mlir::Type type);
  /// Of `n` rows of `type`; see zero.add_rows.
  mlir::FlatSymbolRefAttr addRows(int64_t rows, int64_t columns, int64_t n, mlir::Type type);
  /// (rows [n, c] of f32, indices, 0 to n - 1 as f32, updates [n, c] of `type`) -> the updates of all equal indices added to the row of the
  /// first of them, in their order.
  mlir::FlatSymbolRefAttr addToFirst(mlir::RankedTensorType indices, int64_t columns, mlir::Type type);

private:
  /// The kernel called `name`, made by `build` the first time.
  mlir::FlatSymbolRefAttr once(const std::string &name, llvm::function_ref<mlir::func::FuncOp()> build);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
};

} // namespace zero::shard

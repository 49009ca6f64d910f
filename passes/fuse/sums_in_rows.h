//===- sums_in_rows.h - sums of columns by the kernels that pass over the rows anyway ---------------------===//
// Private to nn-split-columns.
#pragma once
#include "compiler/nn/Nn.h"
#include "passes/fuse/kernel_table.h"
#include <map>

namespace zero::fuse {

/// The sum of columns that a result is, but for its type; null if it is none.
nn::ReduceOp sumOf(mlir::Value result);

/// A launch before `place` of the kernel that makes `results` of `operands`; null if there is no such kernel, and why.
nn::LaunchOp launchBefore(nn::LaunchOp place, llvm::ArrayRef<mlir::Value> results, mlir::ValueRange operands, KernelTable &table,
                          std::string &why);
/// Without the operations between `before` (null: the block's first) and `place` that kernels compute.
void eraseComputed(mlir::Operation *before, mlir::Operation *place);

/// Finds for sums of columns a kernel that passes over the same rows, and has it sum them in parts.
class SumsInRows {
public:
  SumsInRows(mlir::ModuleOp module, KernelTable &table, int64_t least, int64_t enough)
      : symbols(module), table(table), least(least), enough(enough) {}

  /// Of the function's launches. Returns how many there are no more.
  int64_t run(mlir::func::FuncOp function);

private:
  /// Of a kernel that yields sums of equally many and long columns and nothing else, or one that sums each of its rows.
  struct Facts {
    enum { Other, SumsColumns, SumsRows } kind = Other;
    int64_t rows = 0, columns = 0;
  };
  const Facts &factsOf(nn::LaunchOp launch);
  mlir::func::FuncOp kernelOf(nn::LaunchOp launch) const;
  /// Whether the kernel of rows reads or writes all tensors that the columns are summed of, and all else is there before it.
  bool hasAll(nn::LaunchOp rows, nn::LaunchOp columns);
  /// `users` of what the columns' launches make stand before the one of rows.
  bool join(nn::LaunchOp rows, llvm::ArrayRef<nn::LaunchOp> columns, llvm::ArrayRef<mlir::Operation *> users);

  mlir::SymbolTable symbols;
  KernelTable &table;
  int64_t least, enough;                    // elements; columns
  std::map<mlir::Operation *, Facts> facts; // by kernel
};

} // namespace zero::fuse

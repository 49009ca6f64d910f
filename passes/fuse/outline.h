//===- outline.h - clusters to functions and launches ----------------------------------------------------===//
#pragma once
#include "passes/fuse/clusters.h"
#include "llvm/ADT/StringMap.h"

namespace zero::fuse {

/// The kernels of a module, each once however often it is wanted.
class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module);

  struct Entry {
    mlir::func::FuncOp function; // null if the kernel compiler does not take it, and why
    std::string why;
  };
  /// A function that computes `results` from `operands`; an equal one if there is one. `place`: where to insert it.
  const Entry &kernelFor(llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<mlir::Value> operands, mlir::Operation *place);
  int64_t size() const { return made; }

private:
  mlir::SymbolTable symbols;
  /// Of a kernel, by the plan format (kMaxArgs of runtime/plan).
  static constexpr size_t kMostArguments = 256;
  Entry tooMany;
  llvm::StringMap<Entry> known; // by text
  llvm::StringMap<int> numbers; // next number of a name
  int64_t made = 0;
};

/// Rewrites the function; returns the number of launches, or fails with an error.
mlir::FailureOr<int64_t> outline(mlir::func::FuncOp function, const Clusters &clusters, KernelTable &kernels);

} // namespace zero::fuse

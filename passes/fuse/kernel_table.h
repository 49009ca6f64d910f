//===- kernel_table.h - the kernels of a module, each once ------------------------------------------------===//
#pragma once
#include "mlir/IR/SymbolTable.h"
#include "passes/fuse/parts.h"
#include "llvm/ADT/StringMap.h"

namespace zero::fuse {

/// The kernels of a module, each once however often it is wanted.
class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module);

  struct Entry {
    mlir::func::FuncOp function; // null if the kernel compiler does not take it, and why
    std::string why;
    std::vector<int64_t> summed; // dimensions of the rows it sums, as codegen::KernelInfo
  };
  /// A function that computes `results` from `operands`; an equal one if there is one. `place`: where to insert it.
  const Entry &kernelFor(llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<mlir::Value> operands, mlir::Operation *place) {
    return kernelFor(results, operands, Parts(operands.size()), place);
  }
  /// The same, that is given parts of operands.
  const Entry &kernelFor(llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<mlir::Value> operands, const Parts &parts,
                         mlir::Operation *place);
  int64_t size() const { return made; }

private:
  mlir::SymbolTable symbols;
  Entry tooMany;
  llvm::StringMap<Entry> known; // by text
  llvm::StringMap<int> numbers; // next number of a name
  int64_t made = 0;
};

} // namespace zero::fuse

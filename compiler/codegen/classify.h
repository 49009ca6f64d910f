//===- classify.h - which kind of kernel a body is -------------------------------------------------===//
#pragma once
#include "compiler/codegen/program.h"
#include "compiler/nn/Nn.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace zero::codegen {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()).getShape(); }
inline int64_t elementsOf(mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()).getNumElements(); }

inline int64_t elementsIn(llvm::ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

/// Whether a reduction takes away the last (or the first) dimensions, sizes of 1 aside.
enum class Reach { Nothing, Trailing, Leading, Mixed };
Reach reachOf(nn::ReduceOp op);

struct KernelForm {
  Program::Kind kind = Program::Rows;
  llvm::SmallPtrSet<mlir::Operation *, 8> wide;      // reductions that order the whole kernel
  llvm::SmallVector<int64_t> outerShape, innerShape; // of Rows with `sums`: [parts, rows of a part]
  llvm::SmallPtrSet<mlir::Operation *, 4> sums;      // Rows: results that sum columns over the rows of a part
};
/// Fails with an error where the results do not fit one kernel.
mlir::FailureOr<KernelForm> classify(mlir::func::FuncOp kernel);

} // namespace zero::codegen

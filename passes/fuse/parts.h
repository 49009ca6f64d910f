//===- parts.h - what kernels read of a tensor that many slices cut ---------------------------------------===//
// Of a loop over time that an exporter has unrolled, one step reads what lies at its time of a tensor of all times. Were that tensor what
// its kernel is given, the kernel of each time would differ from the others in a number. So it is given the rows that it reads, where
// they lie (nn.rows), and the steps share one kernel.
#pragma once
#include "compiler/nn/build.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace zero::fuse {

/// Parts of one size that are worth a kernel for all.
inline constexpr size_t kManyParts = 16;

/// Rows [from, from + count) of a tensor that is looked at as rows of so many columns.
struct Part {
  int64_t columns = 0, from = 0, count = 0;

  mlir::RankedTensorType typeOf(mlir::Value whole) const;
  /// Where it lies in `whole`.
  mlir::Value of(mlir::Value whole, nn::Build b) const;
};
using Parts = llvm::SmallVector<std::optional<Part>, 8>; // of each operand of a kernel; none: it reads the whole tensor, or anything of it

/// What an operation cuts, seen through views; null if it is no slice.
mlir::Value wholeOf(mlir::Operation *op);
/// What such a slice reads, from the part `rows` of what it cuts.
mlir::Value readFrom(mlir::Value rows, const Part &part, mlir::Operation *slice, nn::Build b);

class ManyParts {
public:
  /// Looks for tensors that `function` makes and of which it reads many parts of one size.
  explicit ManyParts(mlir::func::FuncOp function);

  /// What a kernel of the operations `computed` reads of `operands`, if that is a part of one of these tensors, through slices alone.
  Parts partsOf(llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Operation *> computed, mlir::ValueRange results) const;

private:
  llvm::DenseSet<mlir::Value> tensors;
};

} // namespace zero::fuse

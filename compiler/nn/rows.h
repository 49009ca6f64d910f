//===- rows.h - operations on some rows of their tensors -------------------------------------------===//
// The rows of a tensor are what lies at one index of its leading dimensions, as many of these as make up their number: a batch of B samples
// of S tokens has B * S rows, in tensors [B, S, …] as in those [B * S, …].
#pragma once
#include "compiler/nn/build.h"

namespace zero::nn {

/// Whether the result is the operand's bytes, or some of them: whoever keeps the one keeps the other.
inline bool isView(mlir::Operation *op) { return llvm::isa_and_nonnull<ReshapeOp, RowsOp>(op); }
/// The value that `v` is a view of, or of some rows of which.
inline mlir::Value storedIn(mlir::Value v) {
  while (isView(v.getDefiningOp())) v = v.getDefiningOp()->getOperand(0);
  return v;
}
/// The value that `v` is another shape of: a view of all of it.
inline mlir::Value viewed(mlir::Value v) {
  while (auto view = v.getDefiningOp<ReshapeOp>()) v = view.getInput();
  return v;
}

/// Rows [begin, begin + count) of `all`.
struct Rows {
  int64_t all, begin, count;
};

/// How many leading dimensions make up so many rows, two or more: the fewest; none if it is no product of them.
std::optional<int64_t> leadingOf(llvm::ArrayRef<int64_t> shape, int64_t rows);
/// Elements of one row; 0 for a tensor without so many rows.
int64_t widthOf(mlir::RankedTensorType type, int64_t rows);
/// A tensor that has all of them, with those of `rows` as its first dimension.
mlir::RankedTensorType typeOfRows(mlir::RankedTensorType type, const Rows &rows);

/// As SplittableOpInterface, also for operations whose trait says it: elementwise and row-wise ones.
bool readsRows(mlir::Operation *op, int64_t rows, llvm::SmallBitVector &cut);
bool sumsRows(mlir::Operation *op, unsigned result);

/// The operation on some rows: of its operands (those that it reads row by row cut to these), and so of its results. Sums are those of
/// these rows. It has to read rows.
mlir::Operation *makeRows(Build &b, mlir::Operation *op, const Rows &rows, mlir::ValueRange operands);

} // namespace zero::nn

//===- access.h - what operations are to fusion, and how values reach their users ----------------------===//
#pragma once
#include "compiler/nn/rows.h"

namespace zero::fuse {

int64_t elementsOf(mlir::Value v);

/// Nothing that a kernel may contain: neither elementwise nor movement nor a sum, as library calls and parameters, or a constant of several
/// numbers.
bool isBarrier(mlir::Operation *op);
/// Costs nothing where it is used and is never kept: splat constants, indices, repetitions, views, random numbers.
bool isFree(mlir::Operation *op);
/// Changes only which element of its operand is meant.
bool isMovement(mlir::Operation *op);
/// Puts another dimension last, so that its elements lie apart in its operand.
bool movesLast(mlir::Operation *op);
/// A function of some length (exp, tanh, …), or a formula with one.
bool isExpensive(mlir::Operation *op);
/// Values that one evaluation takes. A slice or a transposition changes an index only; a long function is a dozen instructions and more.
unsigned workOf(mlir::Operation *op);
/// Tensors that a kernel reads and writes at most, by the plan format (kMaxArgs of runtime/plan).
inline constexpr size_t kMostTensors = 256;
/// Tensors that a kernel may read more of, once it computes the operation in place of reading its result.
size_t furtherReads(mlir::Operation *op);

/// How the elements of a value appear in a user: each in its place, each repeated for a row of columns, or otherwise.
struct Access {
  enum Kind { Same, Row, Other } kind = Same;
  int64_t columns = 1; // Row
};

struct Use {
  mlir::Operation *user;
  Access access;
  mlir::OpOperand *operand;    // the user's
  mlir::OpOperand *repetition; // of the last repetition on the way from the value to the user, or null
};

/// Users of a value, looked for through views and repetitions (except repetitions that are kept in memory).
llvm::SmallVector<Use> usesOf(mlir::Value v);

/// Whether a library call, the function's result or a gradient reads the value itself or a view of it.
bool leavesKernels(mlir::Value v);

/// How a reduction goes over its operand.
struct Reduction {
  enum Kind { Trivial, Rows, Columns, Mixed } kind; // takes away nothing, the last, the first, other dimensions
  int64_t whole, rest;                              // elements of operand and result
};
Reduction reductionOf(nn::ReduceOp op);

} // namespace zero::fuse

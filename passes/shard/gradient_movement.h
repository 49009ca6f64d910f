//===- gradient_movement.h - gradients to the optimizer, loss and norm to the caller ----------------------===//
// Private to zero-insert-movement.
#pragma once
#include "passes/shard/program_uses.h"
#include "passes/shard/row_exchange.h"
#include "passes/shard/tied_tables.h"

namespace zero::shard {

class GradientMovement {
public:
  /// `lateBytes`: of gradients whose updates may come last, beside the next step's forward.
  GradientMovement(ProgramUses &uses, StateKernels &kernels, RowExchange &exchange, int64_t lateBytes)
      : uses(uses), kernels(kernels), exchange(exchange), tied(uses, kernels), lateBytes(lateBytes) {}

  /// Of a program whose parameters are in place.
  void finish();

private:
  using Pending = llvm::SmallVector<std::pair<state::BucketOp, mlir::Value>>; // final gradient shards that wait: for the norm, or for time

  void sortByUse(Pending &pending) const;
  /// Buckets whose state comes from another tier for their update. They are spread over forward: by the time that it comes to one of them,
  /// there was time for as large a part of what is late.
  llvm::DenseSet<mlir::Operation *> lateUpdates() const;
  void consumeGradients(state::BucketOp bucket, Pending &pending, llvm::SmallVectorImpl<mlir::Value> &sums);
  /// Where every rank updates all of a bucket it takes the gradient of all.
  mlir::Value wholeIfUpdated(mlir::OpBuilder &b, state::BucketOp bucket, mlir::Value shard);
  /// A scalar, or the hyper-parameters, where updates on the host read them: brought there once, from where they are known.
  mlir::Value onHost(mlir::Value value);
  /// A micro-step's gradients, summed over the ranks. Rows of a table are added to the sum of the rest, which travels as soon as it is
  /// known.
  mlir::Value sumOverRanks(mlir::OpBuilder &b, state::BucketOp bucket, llvm::SmallVectorImpl<nn::GradientOp> &found);
  /// Gradients side by side, summed over the ranks.
  mlir::Value reduce(mlir::OpBuilder &b, state::BucketOp bucket, llvm::SmallVectorImpl<nn::GradientOp> &found);
  mlir::Value reduce(mlir::OpBuilder &b, state::BucketOp bucket, llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<int64_t> offsets);
  /// Added to those of the micro-steps before: `sum`, if they are of this program, else the bucket's accumulator, on the host if that is
  /// there for an update by the host, and this is not the last micro-step.
  mlir::Value accumulate(mlir::OpBuilder &b, state::BucketOp bucket, mlir::Value shard, mlir::Value sum);
  /// One optimizer step from a gradient shard, which is there where the update is made; yields the squared gradient per row of the own
  /// shard unless those are summed apart, as with a norm that it waits for.
  mlir::Value update(mlir::OpBuilder &b, state::BucketOp bucket, mlir::Value shard, mlir::Value norm2, bool sumsApart);
  /// What rests in another tier is fetched, updated and brought back slice by slice, so that a bucket need not be on the device at once.
  int64_t rowsOfSlice(state::BucketOp bucket, int64_t rows) const;
  mlir::Value sumSquares(mlir::OpBuilder &b, state::BucketOp bucket, mlir::Value shard);
  mlir::Value sum(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> parts);
  mlir::Value pack(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> values);

  ProgramUses &uses;
  StateKernels &kernels;
  RowExchange &exchange;
  TiedTables tied;
  int64_t lateBytes;
  llvm::DenseSet<mlir::Operation *> late;     // buckets
  llvm::SmallVector<nn::LaunchOp> superseded; // by exchanges, each before what it reads
  llvm::DenseMap<mlir::Value, mlir::Value> hostCopies;
};

} // namespace zero::shard

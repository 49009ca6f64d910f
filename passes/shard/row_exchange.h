//===- row_exchange.h - rows of a table between ranks, in place of the table --------------------------===//
#pragma once
#include "compiler/nn/library/table_rows.h"
#include "compiler/zero/Zero.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/shard/kernels.h"

namespace zero::shard {

/// In one program: every rank says which rows it wants or has gradients of, and works on those of its own shard. All ranks' indices are
/// gathered once for each tensor of indices.
class RowExchange {
public:
  RowExchange(mlir::func::FuncOp program, int64_t world, StateKernels &kernels) : program(program), world(world), kernels(kernels) {}

  /// Whether the shards of a bucket are whole rows of one table, as zero-partition makes them where rows are exchanged.
  static bool splitsRows(state::BucketOp bucket, mlir::Type table);
  /// The rows that a launch marked with nn.looks_up yields, without the table; the launch is replaced. Returns what reads the shard.
  mlir::Operation *lookUp(nn::LaunchOp launch, state::BucketOp bucket);
  /// What a launch marked with nn.adds_rows adds, to the shard of a gradient.
  mlir::Value addRows(mlir::OpBuilder &b, nn::LaunchOp launch, state::BucketOp bucket, mlir::Value shard);

private:
  /// This rank's number, f32[16].
  mlir::Value rank();
  /// Indices of all ranks, flat, as f32.
  mlir::Value ofAllRanks(mlir::Value indices, llvm::StringRef table);

  mlir::func::FuncOp program;
  int64_t world;
  StateKernels &kernels;
  mlir::Value number;
  llvm::DenseMap<mlir::Value, mlir::Value> gathered;
};

} // namespace zero::shard

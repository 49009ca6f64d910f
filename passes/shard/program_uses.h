//===- program_uses.h - what a program does with buckets ------------------------------------------------===//
// Private to zero-insert-movement.
#pragma once
#include "passes/shard/kernels.h"
#include "passes/shard/layout.h"
#include "passes/shard/uses.h"

namespace zero::shard {

/// Where a parameter lies.
struct Home {
  state::BucketOp bucket;
  int64_t offset = 0;
};
using Homes = llvm::DenseMap<mlir::StringAttr, Home>;

/// What the whole module says about sharding.
struct Sharding {
  int64_t world, accumulate, sliceElements;
  bool scalesLoss;
  train::OptimizerKind optimizer;

  explicit Sharding(mlir::ModuleOp module);
};

/// What a program does with buckets: who reads their parameters, and what it yields of their gradients.
struct ProgramUses {
  mlir::func::FuncOp program;
  const Homes &homes;
  llvm::ArrayRef<state::BucketOp> buckets;
  Sharding sharding;

  llvm::StringRef role;
  bool waitsForNorm = false, updates = false;
  size_t microSteps = 1; // that the program holds
  llvm::SmallVector<Read> reads;
  llvm::DenseMap<mlir::Operation *, mlir::Type> readAs; // of each bucket, the type in which its parameters are read
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> firstRead, lastRead;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<llvm::SmallVector<nn::GradientOp>, 1>> gradients; // of each bucket, by micro-step

  /// Fills in what is below the first four. Fails, with an error, if the program is not one of zero-programs.
  mlir::LogicalResult find();

  Home homeOf(mlir::FlatSymbolRefAttr parameter) const { return homes.lookup(parameter.getAttr()); }
  /// All of a bucket as programs read it.
  mlir::RankedTensorType wholeOf(state::BucketOp bucket) const {
    return mlir::RankedTensorType::get({int64_t(bucket.getElements())}, readAs.lookup(bucket));
  }
  /// The optimizer's view of a shard: its columns, and its rows. The same whether a compute copy is kept or not: so are the sums over rows.
  int64_t row(state::BucketOp bucket) const {
    return rowElements(bucket.getShard(), alignElements(readAs.lookup(bucket).getIntOrFloatBitWidth() / 8));
  }
  int64_t rows(state::BucketOp bucket) const { return bucket.getShard() / row(bucket); }

private:
  mlir::LogicalResult checkSignature();
  mlir::LogicalResult findReads();
  mlir::LogicalResult findGradients();
  state::BucketOp bucketOf(mlir::Operation *user, mlir::FlatSymbolRefAttr parameter) const;
};

/// Something comes from another tier for its update.
bool isElsewhere(state::BucketOp bucket);
/// The type of the compute copy that an update writes; null if there is none, or it has the master's numbers and is copied from there.
mlir::Type computeType(state::BucketOp bucket);
/// The one that stands after the other; either may be null.
mlir::Operation *later(mlir::Operation *a, mlir::Operation *b);

} // namespace zero::shard

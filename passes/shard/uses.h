//===- uses.h - what a micro-step does with each bucket ---------------------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "compiler/zero/Zero.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace zero::shard {

/// Buckets used between two uses of another that is kept meanwhile (zero-merge-gathers).
inline constexpr int64_t kMergeDistance = 1;
/// The same where tokens are done tile by tile (nn-tile-tokens): each tile goes through the weights of an MLP, three as a rule, or a norm's
/// and two.
inline constexpr int64_t kTilesMergeDistance = 3;

/// The uses of buckets so far.
class RecentUses {
public:
  /// One more than `distance` others between two uses are too many for them to be near each other.
  explicit RecentUses(int64_t distance) : distance(distance) {}
  /// A use; whether it is near the bucket's last.
  bool isNear(mlir::StringAttr bucket);
  /// Whether the bucket's last use is near the latest of all.
  bool isRecent(mlir::StringAttr bucket) const { return recent.count(bucket); }

private:
  int64_t distance;
  llvm::MapVector<mlir::StringAttr, llvm::SmallDenseSet<mlir::StringAttr, 2>> recent; // what was used since
};

/// A use of a parameter by an operation that computes, with the views in between.
struct Read {
  mlir::OpOperand *operand;
  nn::GetOp get;
  llvm::SmallVector<nn::ReshapeOp> views; // from the get outwards
};
/// Adds those of what `get` yields.
void collectReads(nn::GetOp get, llvm::SmallVectorImpl<Read> &reads);

struct Uses {
  int64_t visits = 0;  // times its parameters come to the device if they do not rest there: uses near each other are one
  bool stays = false;  // its last use is near its last gradient: what came for the one may stay for the update
  int64_t changed = 0; // the later, the fewer operations stand after its last gradient, in whose time its update can hide; 0: not trained
};

/// Of each bucket, by name, in a module that zero-partition leaves. Fails, with an error, without @train.
mlir::FailureOr<llvm::MapVector<mlir::StringAttr, Uses>> usesOf(mlir::ModuleOp module);

} // namespace zero::shard

//===- clusters.h - which primitives are computed in which kernel ---------------------------------------===//
// The decision of nn-fuse, as data: it changes nothing. Operations are visited from the last to the first, so that
// where a value is wanted is known when its place is decided.
#pragma once
#include "passes/fuse/access.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace zero::fuse {

/// Primitives that become one kernel.
struct Cluster {
  enum Kind { Rows, Columns, Scatter, Scan } kind = Rows;
  int64_t points = 0;  // Rows: elements of a full result; Columns: elements that are reduced; Scatter: elements that are added
  int64_t columns = 0; // Rows: entries of a row, 0 while no reduction or result per row has said; Columns: elements of a result
  llvm::SmallVector<mlir::Operation *> members;
  llvm::SmallVector<mlir::Value> results; // kept in memory, in order of definition
  bool merged = false;                    // into another one
  size_t work = 0;                        // operations times the indices they are computed at, for one point
  size_t reads = 1;                       // tensors that one of its results is computed from, at most
};

struct Clusters {
  std::vector<Cluster> clusters;
  llvm::DenseMap<mlir::Value, unsigned> home; // values kept in memory, and the cluster that computes them
};

Clusters formClusters(mlir::func::FuncOp function);

} // namespace zero::fuse

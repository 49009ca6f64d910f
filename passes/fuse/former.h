//===- former.h - forming clusters ---------------------------------------------------------------------===//
// Private to clusters.cpp, repeat.cpp and neighbours.cpp.
#pragma once
#include "passes/fuse/clusters.h"
#include "llvm/ADT/SetVector.h"

namespace zero::fuse {

/// Where a value stands in a kernel that computes it.
enum class Place {
  Full, // once per point
  Row,  // once per row
  Moved // at some other index
};
using Consumers = llvm::MapVector<unsigned, Place>; // kernels that need a value, and where it stands there

class Former {
public:
  explicit Former(mlir::func::FuncOp function);
  Clusters run();

private:
  std::vector<mlir::Operation *> order;
  llvm::DenseMap<mlir::Operation *, int> position;
  std::vector<Cluster> clusters;
  llvm::DenseMap<mlir::Operation *, unsigned> member;                                    // of the one cluster an operation belongs to
  llvm::DenseMap<mlir::Operation *, llvm::SmallMapVector<unsigned, Place, 2>> evaluated; // everywhere it is computed
  llvm::DenseMap<mlir::Value, unsigned> home;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> leaves;

  //--- one operation (clusters.cpp) ---------------------------------------------------------------
  void place(mlir::Operation *op);
  /// Where a value is needed by a user that stands at `place` of a kernel, and how many columns share it there.
  std::pair<Place, int64_t> placeIn(const Cluster &cluster, const Use &use, Place place);
  bool mayJoin(mlir::Operation *op, unsigned number, Place where);
  /// Whether the kernel could also write the value.
  bool mayKeep(mlir::Operation *op, unsigned number, Place where);
  void join(mlir::Operation *op, unsigned number, Place where, bool alone);
  void start(mlir::Operation *op);
  Clusters finish();

  //--- what computing a value again would read (repeat.cpp) --------------------------------------------
  /// Tensors in memory from which the value would be computed; the value itself if it will be in memory.
  const llvm::SmallVector<mlir::Value, 2> &leavesOf(mlir::Value v);
  bool cheapToRepeat(mlir::Operation *op, const Consumers &consumers);
  bool holdsExpensive(mlir::Operation *op);

  //--- order, and kernels side by side (neighbours.cpp) ---------------------------------------------------
  int first(unsigned cluster) const;
  int last(unsigned cluster) const;
  /// Operations outside that the cluster needs, seen through what it computes itself and what has no place of its own.
  /// Those long before position `from` are left out. `tensors`: what it reads from memory, and what of its own it goes through.
  llvm::SmallVector<mlir::Operation *> neededBy(unsigned cluster, int from, llvm::SetVector<mlir::Value> *tensors = nullptr);
  /// Whether computing `work` needs any of `targets` (which begin at `from`), cluster by cluster.
  bool reaches(llvm::SmallVector<mlir::Operation *> work, llvm::function_ref<bool(mlir::Operation *)> target, int from);
  /// Whether the cluster needs `op` by a way that leads out of the cluster.
  bool reachesOutside(unsigned cluster, mlir::Operation *op);
  bool independent(unsigned a, unsigned b);
  /// Kernels over the same points that read, or write and read, the same large tensor.
  void mergeNeighbours();
  void merge(unsigned a, unsigned b);
};

} // namespace zero::fuse

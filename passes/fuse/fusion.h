//===- fusion.h - forming clusters ---------------------------------------------------------------------===//
// Private to clusters.cpp, repeat.cpp and neighbours.cpp.
#pragma once
#include "passes/fuse/clusters.h"
#include "llvm/ADT/SetVector.h"
#include <limits>

namespace zero::fuse {

/// Where a value stands in a kernel that computes it.
enum class Level {
  Full, // once per point
  Row,  // once per row
  Moved // at some other index
};

/// The tile of a parameter that something is computed from, null if none; or `several` of them.
struct TileRead {
  mlir::StringAttr tile;
  bool several = false;

  void add(TileRead other) {
    several |= other.several || (tile && other.tile && tile != other.tile);
    if (!tile) tile = other.tile;
  }
};

/// How a kernel computes a value: where it stands, and at which indices it is asked for, sorted. An index is known by the
/// operations it was changed by on its way up from the results (see Fusion::below); 0 is the results' own.
struct Evaluation {
  Level place;
  llvm::SmallVector<unsigned, 1> indices = {0};
};
using Consumers = llvm::MapVector<unsigned, Evaluation>; // kernels that need a value

/// The work of a kernel is bounded: beyond this its values are more than any register file or instruction cache holds, and what
/// generates its code takes memory for each. Real kernels stay far below.
constexpr size_t kMostWork = 160;
/// A value that is asked for at more indices than this is kept in memory rather than computed anew for each: two windows on top of each
/// other would multiply. Movement that changes nothing but an index costs nothing and is repeated freely.
constexpr size_t kMostIndices = 16;
/// A value that reads a tensor at more places than this is a window over it. It is computed once, in the order of what it
/// reads, and by one kernel where one can.
constexpr size_t kWindow = 8;
/// A transposed tensor of which each element is read this often, and all together this often, is transposed in memory: lanes would gather
/// its elements one by one each time.
constexpr int64_t kManyReads = 16, kWorthTransposing = 1 << 16;
/// Movements on top of each other each add conditions to every load below.
constexpr unsigned kMostMovements = 24;

class Fusion {
public:
  explicit Fusion(mlir::func::FuncOp function);
  Clusters run();

private:
  std::vector<mlir::Operation *> order;
  llvm::DenseMap<mlir::Operation *, int> position;
  std::vector<Cluster> clusters;
  struct Extent {
    int first, last; // positions of members
  };
  std::vector<Extent> extents;                                                                // of each cluster
  std::vector<llvm::SmallVector<mlir::Operation *>> computed;                                 // by each cluster, members or not
  llvm::DenseMap<mlir::Operation *, unsigned> member;                                         // of the one cluster an operation belongs to
  llvm::DenseMap<mlir::Operation *, llvm::SmallMapVector<unsigned, Evaluation, 1>> evaluated; // everywhere it is computed
  llvm::DenseMap<mlir::Value, unsigned> home;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> leaves;
  /// What one element of a value takes to compute from its leaves.
  using Place = std::pair<mlir::Value, size_t>; // a leaf, and a hash of what moves it
  struct Effort {
    llvm::SmallVector<Place, 2> places; // that are read
    size_t work = 0;
  };
  llvm::DenseMap<mlir::Value, Effort> efforts; // of values that are no leaves
  llvm::DenseSet<mlir::Operation *> holdingExpensive;
  llvm::DenseMap<mlir::Operation *, bool> free;
  llvm::DenseSet<mlir::Value> leaving;                                      // kernels, see leavesKernels
  llvm::DenseMap<std::pair<unsigned, mlir::OpOperand *>, unsigned> indices; // by the index above and what changes it
  llvm::DenseSet<mlir::StringAttr> tiles;                                   // all parameters that are one
  llvm::DenseMap<mlir::Value, TileRead> readBelow;                          // to compute a value, by its own kernel or an earlier one
  /// Clusters that one needs by a path through others, of operations from position `first` on or some before it.
  struct IndirectNeeds {
    unsigned merges = 0; // that had been made: it is unknown once there are more
    unsigned asked = 0;
    int first = std::numeric_limits<int>::max(); // nothing is known
    llvm::DenseSet<unsigned> clusters = {};
  };
  llvm::DenseMap<unsigned, IndirectNeeds> indirectNeeds;
  unsigned merges = 0;
  std::vector<TileRead> readBy;        // each cluster itself
  std::vector<unsigned> movements{0};  // on top of each other, of each index
  std::vector<bool> transposed{false}; // each index: another dimension is the last

  //--- one operation (clusters.cpp) ---------------------------------------------------------------
  void place(mlir::Operation *op);
  /// The index that an operand is asked for at where the result of its operation is asked for at `index`.
  unsigned below(mlir::OpOperand *operand, unsigned index);
  /// The indices a use adds to those its user is asked for at.
  void addIndices(llvm::SmallVectorImpl<unsigned> &into, const Use &use, llvm::ArrayRef<unsigned> ofUser);
  /// Where a value is needed by a user that stands at `place` of a kernel, and how many columns share it there.
  std::pair<Level, int64_t> levelIn(const Cluster &cluster, const Use &use, Level place);
  bool mayJoin(mlir::Operation *op, unsigned number, const Evaluation &how);
  /// Whether the kernel would read a tensor through a transposition over and over.
  bool transposesOften(mlir::Operation *op, unsigned number, const Evaluation &how) const;
  /// Whether the kernel would compute a window with strided reads, once more for each pass over a row, or only the
  /// last part of one that a kernel of its own had room for.
  bool tearsWindow(mlir::Operation *op, unsigned number, const Evaluation &how) const;
  /// Whether several places are asked for at several indices each, so that together they are a window.
  bool multipliesWindows(mlir::Operation *op, const Evaluation &how) const;
  bool sumsRows(unsigned number) const;
  /// Tiles of a parameter are whole one after another, so a kernel reads one at most.
  bool readsOtherTile(mlir::Operation *op, unsigned number) const;
  /// Whether the kernel could also write the value.
  bool mayKeep(mlir::Operation *op, unsigned number, Level where);
  void join(mlir::Operation *op, unsigned number, Evaluation how, bool alone);
  void start(mlir::Operation *op);
  Clusters finish();

  //--- what computing a value again would read (repeat.cpp) --------------------------------------------
  /// What is known of a value from its operands, in the function's order, so that nothing has to go down the graph.
  void learn(mlir::Operation *op);
  void learnEffort(mlir::Operation *op);
  /// Tensors in memory from which the value would be computed; the value itself if it will be in memory.
  llvm::ArrayRef<mlir::Value> leavesOf(mlir::Value v) const;
  /// At how many places it reads one tensor, the one that it reads at most.
  size_t placesOf(mlir::Value v) const;
  bool isWindow(mlir::Value v) const { return placesOf(v) > kWindow; }
  bool cheapToRepeat(mlir::Operation *op, const Consumers &consumers);
  /// Whether a window that one cluster computes, or what it makes from a sum over a row, is wanted by the other one at other indices than
  /// its own. As one kernel they would compute it twice: slower, and sums in an order of its own, where equal sums have equal bits.
  bool isWantedElsewhere(unsigned from, unsigned in);
  bool computesWindow(unsigned number) const;
  /// isFree, found out once: it looks at all users.
  bool costsNothing(mlir::Operation *op);
  bool holdsExpensive(mlir::Operation *op) const { return holdingExpensive.contains(op); }

  //--- order, and kernels side by side (neighbours.cpp) ---------------------------------------------------
  /// Operations outside that the cluster needs, seen through what it computes itself and what has no place of its own.
  /// Those long before position `from` are left out. `tensors`: what it reads from memory, and what of its own it goes through.
  llvm::SmallVector<mlir::Operation *> neededBy(unsigned cluster, int from, llvm::SetVector<mlir::Value> *tensors = nullptr);
  /// From `work` to what it needs, cluster by cluster, each once: `meets` is told every edge, from a user to what defines its operand, and
  /// ends the walk where it says so. Whether it did.
  bool walkBack(llvm::SmallVector<mlir::Operation *> work, int from, llvm::function_ref<bool(mlir::Operation *, mlir::Operation *)> meets);
  /// Whether computing `work` needs any of the targets, which begin at `from`.
  bool reaches(llvm::SmallVector<mlir::Operation *> work, llvm::function_ref<bool(mlir::Operation *)> target, int from);
  /// Whether the cluster needs `op` by a way that leads out of the cluster.
  bool reachesOutside(unsigned cluster, mlir::Operation *op);
  bool independent(unsigned a, unsigned b);
  /// Whether one needs the other by a path through a third.
  bool needsIndirectly(unsigned from, unsigned to);
  /// Kernels over the same points that read, or write and read, the same large tensor.
  void mergeNeighbours();
  /// Large tensors that several kernels touch, and these kernels.
  llvm::MapVector<mlir::Value, llvm::SmallVector<unsigned>> touching();
  bool mayMerge(unsigned a, unsigned b);
  void merge(unsigned a, unsigned b);
};

} // namespace zero::fuse

//===- clusters.cpp - which primitives are computed in which kernel --------------------------------------===//
#include "passes/fuse/clusters.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

/// Where a value stands in a kernel that computes it.
enum class Place {
  Full, // once per point
  Row,  // once per row
  Moved // at some other index
};

class Former {
public:
  explicit Former(func::FuncOp function) {
    int next = 0;
    for (Operation &op : function.getBody().front()) {
      position[&op] = next++;
      order.push_back(&op);
    }
  }

  Clusters run() {
    for (Operation *op : llvm::reverse(order))
      if (!isBarrier(op) && !isFree(op)) place(op);
    mergeNeighbours();
    return finish();
  }

private:
  /// Two kernels further apart than this many operations are not looked at for merging: the tensors they share would be
  /// read again from memory anyway, and the search stays linear in the size of the model.
  static constexpr int kNear = 512;

  /// A path from one kernel to another may lead through a kernel some of whose operations stand before both; further back than this
  /// it is not looked for (`outline` takes a kernel apart that turns out to need itself).
  static constexpr int kSlack = 256;

  std::vector<Operation *> order;
  DenseMap<Operation *, int> position;
  std::vector<Cluster> clusters;
  DenseMap<Operation *, unsigned> member;                                    // of the one cluster an operation belongs to
  DenseMap<Operation *, llvm::SmallMapVector<unsigned, Place, 2>> evaluated; // everywhere it is computed
  DenseMap<Value, unsigned> home;
  DenseMap<Value, SmallVector<Value, 2>> leaves;

  //--- one operation ------------------------------------------------------------------------------

  void place(Operation *op) {
    Value v = op->getResult(0);
    bool kept = leavesKernels(v);
    llvm::SmallMapVector<unsigned, Place, 4> consumers;
    bool rowsOfOther = false;
    int64_t ratio = 0;
    for (const Use &use : usesOf(v)) {
      if (isBarrier(use.user)) continue; // its view, or a repetition of its own, was counted by `kept`
      for (auto [cluster, userPlace] : evaluated[use.user]) {
        auto [where, columns] = placeIn(clusters[cluster], use, userPlace);
        if (where == Place::Row && columns) {
          rowsOfOther |= ratio && ratio != columns;
          ratio = columns;
        }
        auto [it, fresh] = consumers.insert({cluster, where});
        if (!fresh && it->second != where) it->second = it->second == Place::Moved || where == Place::Moved ? Place::Moved : Place::Full;
      }
    }
    if (rowsOfOther)
      for (auto &entry : consumers) entry.second = Place::Moved;
    if (consumers.empty() && !kept) return; // dead

    bool everywhere = llvm::all_of(consumers, [&](auto &c) { return mayJoin(op, c.first, c.second); });
    if (!kept && everywhere && (consumers.size() == 1 || cheapToRepeat(op, consumers))) {
      for (auto &[cluster, where] : consumers) join(op, cluster, where, consumers.size() == 1);
      return;
    }
    SmallVector<unsigned> candidates;
    for (auto &[cluster, where] : consumers)
      if (mayJoin(op, cluster, where) && mayKeep(op, cluster, where)) candidates.push_back(cluster);
    llvm::sort(candidates, [&](unsigned a, unsigned b) { return first(a) < first(b); });
    for (unsigned cluster : candidates)
      if (!reachesOutside(cluster, op)) {
        join(op, cluster, consumers.lookup(cluster), true);
        home[v] = cluster;
        return;
      }
    start(op);
    home[v] = clusters.size() - 1;
  }

  /// Where a value is needed by a user that stands at `place` of a kernel, and how many columns share it there.
  std::pair<Place, int64_t> placeIn(const Cluster &cluster, const Use &use, Place place) {
    Operation *user = use.user;
    if (use.access.kind == Access::Other || (isMovement(user) && !isa<BroadcastOp>(user)) || isa<ScatterAddOp, CumSumOp>(user) ||
        place == Place::Moved)
      return {Place::Moved, 0};
    if (auto reduce = dyn_cast<ReduceOp>(user)) {
      auto r = reductionOf(reduce);
      if (r.kind == Reduction::Trivial) return {use.access.kind == Access::Same ? place : Place::Moved, 0};
      bool wide = cluster.kind == Cluster::Columns ? r.kind == Reduction::Columns : r.kind == Reduction::Rows && place == Place::Row;
      if (!wide) return {Place::Moved, 0};
      place = Place::Full;
    } else if (isa<BroadcastOp>(user)) {
      return {Place::Moved, 0}; // a repetition that is kept
    }
    if (use.access.kind == Access::Same) return {place, 0};
    if (place == Place::Full && (cluster.columns == 0 || cluster.columns == use.access.columns) && cluster.kind == Cluster::Rows)
      return {Place::Row, use.access.columns};
    return {Place::Moved, 0};
  }

  bool mayJoin(Operation *op, unsigned number, Place where) {
    const Cluster &cluster = clusters[number];
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      auto r = reductionOf(reduce);
      if (r.kind == Reduction::Trivial) return true;
      if (r.kind == Reduction::Rows && cluster.kind == Cluster::Rows) {
        int64_t columns = r.whole / r.rest;
        bool row = where == Place::Row && r.whole == cluster.points && (cluster.columns == 0 || cluster.columns == columns);
        bool grows = where == Place::Full && r.rest == cluster.points && cluster.columns == 0; // the kernel's points become rows
        return row || grows;
      }
      if (r.kind == Reduction::Columns) {
        bool same = cluster.kind == Cluster::Columns && where != Place::Moved && r.whole == cluster.points && r.rest == cluster.columns;
        bool grows = cluster.kind == Cluster::Rows && where == Place::Full && r.rest == cluster.points && cluster.columns == 0;
        return same || grows;
      }
      return false;
    }
    if (isa<CumSumOp>(op)) return false;
    if (isa<ScatterAddOp>(op)) { // onto something: the sum begins with the other operand
      auto add = cluster.members.size() == 1 ? dyn_cast<AddOp>(cluster.members[0]) : AddOp();
      return add && cluster.kind == Cluster::Rows && llvm::count(add->getOperands(), op->getResult(0)) == 1 && op->getResult(0).hasOneUse();
    }
    // A long function of few elements is not computed again for each of many.
    bool repeated = where == Place::Moved && elementsOf(op->getResult(0)) * 4 <= cluster.points;
    return !repeated || !holdsExpensive(op);
  }

  /// Whether the kernel could also write the value.
  bool mayKeep(Operation *op, unsigned number, Place where) {
    const Cluster &cluster = clusters[number];
    int64_t elements = elementsOf(op->getResult(0));
    if (isa<ScatterAddOp, CumSumOp>(op) || where == Place::Moved) return false;
    auto reduce = dyn_cast<ReduceOp>(op);
    if (cluster.kind == Cluster::Columns) return reduce && reductionOf(reduce).kind == Reduction::Columns;
    if (cluster.kind != Cluster::Rows) return false;
    if (reduce && reductionOf(reduce).kind != Reduction::Trivial) return true; // as `mayJoin` allows it
    if (where == Place::Full) return elements == cluster.points;
    return elements < cluster.points && cluster.points % elements == 0 &&
           (cluster.columns == 0 || elements * cluster.columns == cluster.points);
  }

  void join(Operation *op, unsigned number, Place where, bool alone) {
    Cluster &cluster = clusters[number];
    auto reduce = dyn_cast<ReduceOp>(op);
    auto r = reduce ? reductionOf(reduce) : Reduction{Reduction::Trivial, 0, 0};
    if (isa<ScatterAddOp>(op)) {
      cluster.kind = Cluster::Scatter;
    } else if (r.kind == Reduction::Rows) {
      if (where == Place::Full) { // grows
        for (Operation *m : cluster.members)
          if (auto it = evaluated.find(m); it != evaluated.end() && it->second.lookup(number) == Place::Full)
            it->second[number] = Place::Row;
        cluster.points = r.whole;
        where = Place::Row;
      }
      cluster.columns = r.whole / r.rest;
    } else if (r.kind == Reduction::Columns && cluster.kind == Cluster::Rows) {
      cluster.kind = Cluster::Columns;
      cluster.points = r.whole, cluster.columns = r.rest;
    } else if (where == Place::Row && cluster.kind == Cluster::Rows && cluster.columns == 0) {
      cluster.columns = cluster.points / elementsOf(op->getResult(0));
    }
    evaluated[op][number] = where;
    if (alone) {
      member[op] = number;
      cluster.members.push_back(op);
    }
  }

  void start(Operation *op) {
    Cluster cluster;
    cluster.points = elementsOf(op->getResult(0));
    Place where = Place::Full;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      auto r = reductionOf(reduce);
      if (r.kind == Reduction::Rows)
        cluster.points = r.whole, cluster.columns = r.whole / r.rest, where = Place::Row;
      else if (r.kind == Reduction::Columns)
        cluster.kind = Cluster::Columns, cluster.points = r.whole, cluster.columns = r.rest;
    }
    if (isa<ScatterAddOp>(op)) cluster.kind = Cluster::Scatter;
    if (isa<CumSumOp>(op)) cluster.kind = Cluster::Scan;
    clusters.push_back(cluster);
    unsigned number = clusters.size() - 1;
    evaluated[op][number] = where;
    member[op] = number;
    clusters[number].members.push_back(op);
  }

  //--- what computing a value again would read -----------------------------------------------------

  /// Tensors in memory from which the value would be computed; the value itself if it will be in memory.
  const SmallVector<Value, 2> &leavesOf(Value v) {
    v = viewed(v);
    if (auto it = leaves.find(v); it != leaves.end()) return it->second;
    SmallVector<Value, 2> found;
    Operation *op = v.getDefiningOp();
    bool isReduction = op && isa<ReduceOp>(op) && reductionOf(cast<ReduceOp>(op)).kind != Reduction::Trivial;
    if (!op || isBarrier(op) || (!isFree(op) && leavesKernels(v)) || isReduction || isa<ScatterAddOp, CumSumOp, GatherOp>(op)) {
      found.push_back(v);
    } else {
      for (Value operand : op->getOperands())
        for (Value leaf : SmallVector<Value, 2>(leavesOf(operand)))
          if (!llvm::is_contained(found, leaf)) found.push_back(leaf);
      if (!isFree(op) && !v.hasOneUse() && large(found, elementsOf(v)) > 1) found.assign(1, v);
    }
    return leaves[v] = found;
  }

  /// How many of the tensors have about as many elements or more.
  static int large(ArrayRef<Value> tensors, int64_t elements) {
    return llvm::count_if(tensors, [&](Value t) { return elementsOf(t) * 4 > elements; });
  }

  bool cheapToRepeat(Operation *op, const llvm::SmallMapVector<unsigned, Place, 4> &consumers) {
    if (isa<ScatterAddOp, CumSumOp, GatherOp>(op)) return false;
    if (auto reduce = dyn_cast<ReduceOp>(op); reduce && reductionOf(reduce).kind != Reduction::Trivial) return false;
    SmallVector<Value, 4> from;
    for (Value operand : op->getOperands())
      for (Value leaf : SmallVector<Value, 2>(leavesOf(operand)))
        if (!llvm::is_contained(from, leaf)) from.push_back(leaf);
    // Gathered rows that only this operation reads would have to be kept in its place.
    if (llvm::any_of(op->getOperands(), [](Value v) { return isa_and_nonnull<GatherOp>(v.getDefiningOp()) && v.hasOneUse(); }))
      return false;
    int64_t points =
        elementsOf(op->getResult(0)); // what counts is what the kernels touch anyway: values per row weigh nothing beside the rows
    for (auto &[cluster, where] : consumers) points = std::max(points, clusters[cluster].points);
    int tensors = large(from, points);
    // Sums over rows cannot share the kernel that would write the value: reading two tensors there costs no more.
    int others = llvm::count_if(consumers, [&](auto &c) { return clusters[c.first].kind != Cluster::Columns; });
    return tensors <= 1 || (tensors == 2 && others <= 1);
  }

  bool holdsExpensive(Operation *op) {
    if (isExpensive(op)) return true;
    return llvm::any_of(op->getOperands(), [&](Value v) {
      v = viewed(v);
      Operation *from = v.getDefiningOp();
      return from && !isBarrier(from) && !leavesKernels(v) && !isa<ReduceOp, ScatterAddOp, CumSumOp>(from) && holdsExpensive(from);
    });
  }

  //--- order ---------------------------------------------------------------------------------------

  int first(unsigned cluster) const {
    int p = INT_MAX;
    for (Operation *m : clusters[cluster].members) p = std::min(p, position.lookup(m));
    return p;
  }
  int last(unsigned cluster) const {
    int p = -1;
    for (Operation *m : clusters[cluster].members) p = std::max(p, position.lookup(m));
    return p;
  }

  /// Operations outside that the cluster needs, seen through what it computes itself and what has no place of its own.
  /// Those long before position `from` are left out. `tensors`: what it reads from memory, and what of its own it goes through.
  SmallVector<Operation *> neededBy(unsigned cluster, int from, llvm::SetVector<Value> *tensors = nullptr) {
    SmallVector<Operation *> needed, work(clusters[cluster].members);
    DenseSet<Operation *> seen(work.begin(), work.end());
    while (!work.empty())
      for (Value v : work.pop_back_val()->getOperands()) {
        if (tensors && (isa<BlockArgument>(v) || isBarrier(v.getDefiningOp()) || home.contains(v))) tensors->insert(v);
        if (Operation *d = v.getDefiningOp(); d && position.lookup(d) >= from - kSlack && seen.insert(d).second) {
          bool own = !isBarrier(d) && !home.contains(d->getResult(0)) && (!member.contains(d) || member[d] == cluster);
          (own ? work : needed).push_back(d);
        }
      }
    return needed;
  }

  /// Whether computing `work` needs any of `targets` (which begin at `from`), cluster by cluster.
  bool reaches(SmallVector<Operation *> work, function_ref<bool(Operation *)> target, int from) {
    DenseSet<Operation *> seen(work.begin(), work.end());
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (target(op)) return true;
      auto visit = [&](Operation *o) {
        for (Value v : o->getOperands())
          if (Operation *d = v.getDefiningOp(); d && position.lookup(d) >= from - kSlack && seen.insert(d).second) work.push_back(d);
      };
      visit(op);
      if (auto it = member.find(op); it != member.end())
        for (Operation *m : clusters[it->second].members) visit(m);
    }
    return false;
  }

  /// Whether the cluster needs `op` by a way that leads out of the cluster.
  bool reachesOutside(unsigned cluster, Operation *op) {
    auto needed = neededBy(cluster, position[op]);
    llvm::erase(needed, op);
    return reaches(
        std::move(needed), [&](Operation *o) { return o == op; }, position[op]);
  }

  //--- neighbours ----------------------------------------------------------------------------------

  bool fit(const Cluster &a, const Cluster &b) {
    if (a.kind != b.kind || a.points != b.points) return false;
    if (a.kind == Cluster::Columns) return a.columns == b.columns;
    return a.kind == Cluster::Rows && (a.columns == b.columns || !a.columns || !b.columns);
  }

  bool independent(unsigned a, unsigned b) {
    auto leads = [&](unsigned from, unsigned to) {
      auto needed = neededBy(from, first(to));
      llvm::erase_if(needed, [&](Operation *o) { // a direct edge does not matter
        auto it = member.find(o);
        return it != member.end() && it->second == to;
      });
      return reaches(
          std::move(needed),
          [&](Operation *o) {
            auto it = member.find(o);
            return it != member.end() && it->second == to;
          },
          first(to));
    };
    return !leads(a, b) && !leads(b, a);
  }

  /// Kernels over the same points that read, or write and read, the same large tensor.
  void mergeNeighbours() {
    llvm::MapVector<Value, SmallVector<unsigned>> touching;
    for (unsigned c = 0; c < clusters.size(); ++c) {
      llvm::SetVector<Value> tensors;
      neededBy(c, 0, &tensors);
      for (Operation *m : clusters[c].members)
        if (auto it = home.find(m->getResult(0)); it != home.end() && it->second == c) tensors.insert(m->getResult(0));
      for (Value v : tensors)
        if (elementsOf(v) * 4 > clusters[c].points) {
          // Results of one library call count as one tensor: what is done with them alike is done at once.
          Value key = isa<BlockArgument>(v) || !isBarrier(v.getDefiningOp()) ? v : v.getDefiningOp()->getResult(0);
          if (touching[key].empty() || touching[key].back() != c) touching[key].push_back(c);
        }
    }
    std::vector<unsigned> now(clusters.size());
    for (unsigned c = 0; c < now.size(); ++c) now[c] = c;
    auto current = [&](unsigned c) {
      while (now[c] != c) c = now[c];
      return c;
    };
    for (auto &[tensor, list] : touching)
      for (size_t i = 0; i < list.size(); ++i)
        for (size_t j = i + 1; j < list.size(); ++j) {
          unsigned a = current(list[i]), b = current(list[j]);
          if (a == b || !fit(clusters[a], clusters[b]) || std::abs(last(a) - last(b)) > kNear ||
              clusters[a].members.size() + clusters[b].members.size() > 200)
            continue;
          if (!independent(a, b)) continue;
          merge(a, b);
          now[b] = a;
        }
  }

  void merge(unsigned a, unsigned b) {
    Cluster &into = clusters[a], &from = clusters[b];
    for (Operation *m : from.members) {
      member[m] = a;
      into.members.push_back(m);
      for (Value v : m->getResults())
        if (auto it = home.find(v); it != home.end() && it->second == b) it->second = a;
    }
    into.columns = std::max(into.columns, from.columns);
    from.members.clear();
    from.merged = true;
  }

  Clusters finish() {
    for (Operation *op : order)
      for (Value v : op->getResults())
        if (auto it = home.find(v); it != home.end()) clusters[it->second].results.push_back(v);
    return {std::move(clusters), std::move(home)};
  }
};

} // namespace

Clusters formClusters(func::FuncOp function) { return Former(function).run(); }

} // namespace zero::fuse

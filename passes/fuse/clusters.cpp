//===- clusters.cpp - which primitives are computed in which kernel --------------------------------------===//
#include "passes/fuse/fusion.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {

Fusion::Fusion(func::FuncOp function) {
  int next = 0;
  for (Operation &op : function.getBody().front()) {
    position[&op] = next++;
    order.push_back(&op);
  }
  for (BlockArgument a : function.getArguments()) leaves[a] = {a};
  if (auto module = function->getParentOfType<ModuleOp>())
    for (auto parameter : module.getOps<ParameterOp>())
      if (parameter.getTileOf()) tiles.insert(parameter.getSymNameAttr());
  for (Operation *op : order) learn(op);
}

Clusters Fusion::run() {
  for (Operation *op : llvm::reverse(order))
    if (!isBarrier(op) && !isFree(op)) place(op);
  mergeNeighbours();
  return finish();
}

void Fusion::place(Operation *op) {
  Value v = op->getResult(0);
  bool kept = leavesKernels(v);
  Consumers consumers;
  bool rowsOfOther = false;
  int64_t ratio = 0;
  for (const Use &use : usesOf(v)) {
    if (isBarrier(use.user)) continue; // its view, or a repetition of its own, was counted by `kept`
    for (auto &[cluster, ofUser] : evaluated[use.user]) {
      auto [where, columns] = levelIn(clusters[cluster], use, ofUser.place);
      if (where == Level::Row && columns) {
        rowsOfOther |= ratio && ratio != columns;
        ratio = columns;
      }
      auto [it, fresh] = consumers.insert({cluster, {where, {}}});
      Level &there = it->second.place;
      if (!fresh && there != where) there = there == Level::Moved || where == Level::Moved ? Level::Moved : Level::Full;
      addIndices(it->second.indices, use, ofUser.indices);
    }
  }
  if (rowsOfOther)
    for (auto &entry : consumers) entry.second.place = Level::Moved;
  if (consumers.empty() && !kept) return; // dead

  size_t asked = 0;
  for (auto &[cluster, how] : consumers) asked += how.indices.size();
  bool everywhere = (asked <= kMostIndices || !isMovement(op) || workOf(op) == 0) &&
                    llvm::all_of(consumers, [&](auto &c) { return mayJoin(op, c.first, c.second); });
  if (!kept && everywhere && (consumers.size() == 1 || cheapToRepeat(op, consumers))) {
    for (auto &[cluster, how] : consumers) join(op, cluster, how, consumers.size() == 1);
    return;
  }
  SmallVector<unsigned> candidates;
  for (auto &[cluster, how] : consumers)
    if (mayJoin(op, cluster, how) && mayKeep(op, cluster, how.place)) candidates.push_back(cluster);
  llvm::sort(candidates, [&](unsigned a, unsigned b) { return extents[a].first < extents[b].first; });
  for (unsigned cluster : candidates)
    if (!reachesOutside(cluster, op)) {
      join(op, cluster, consumers.find(cluster)->second, true);
      home[v] = cluster;
      return;
    }
  start(op);
  home[v] = clusters.size() - 1;
}

unsigned Fusion::below(OpOperand *operand, unsigned index) {
  auto [it, fresh] = indices.try_emplace({index, operand}, movements.size());
  if (fresh) {
    movements.push_back(movements[index] + 1);
    transposed.push_back(transposed[index] || movesLast(operand->getOwner()));
  }
  return it->second;
}

void Fusion::addIndices(SmallVectorImpl<unsigned> &into, const Use &use, ArrayRef<unsigned> ofUser) {
  Operation *user = use.user;
  bool moves = isMovement(user) || user->hasTrait<Accumulates>();
  for (unsigned index : ofUser) {
    if (into.size() > kMostWork) return; // too many already
    if (moves) index = below(use.operand, index);
    if (use.repetition) index = below(use.repetition, index);
    if (auto at = llvm::lower_bound(into, index); at == into.end() || *at != index) into.insert(at, index);
  }
}

std::pair<Level, int64_t> Fusion::levelIn(const Cluster &cluster, const Use &use, Level place) {
  Operation *user = use.user;
  if (use.access.kind == Access::Other || (isMovement(user) && !isa<BroadcastOp>(user)) || isa<ScatterAddOp, CumSumOp>(user) ||
      place == Level::Moved)
    return {Level::Moved, 0};
  if (auto reduce = dyn_cast<ReduceOp>(user)) {
    auto r = reductionOf(reduce);
    if (r.kind == Reduction::Trivial) return {use.access.kind == Access::Same ? place : Level::Moved, 0};
    bool wide = cluster.kind == Cluster::Columns ? r.kind == Reduction::Columns : r.kind == Reduction::Rows && place == Level::Row;
    if (!wide) return {Level::Moved, 0};
    place = Level::Full;
  } else if (isa<BroadcastOp>(user)) {
    return {Level::Moved, 0}; // a repetition that is kept
  }
  if (use.access.kind == Access::Same) return {place, 0};
  if (place == Level::Full && (cluster.columns == 0 || cluster.columns == use.access.columns) && cluster.kind == Cluster::Rows)
    return {Level::Row, use.access.columns};
  return {Level::Moved, 0};
}

bool Fusion::readsOtherTile(Operation *op, unsigned number) const {
  TileRead own = readBy[number], more = readBelow.lookup(op->getResult(0));
  own.add(more);
  return readBy[number].tile && own.several;
}

bool Fusion::transposesOften(Operation *op, unsigned number, const Evaluation &how) const {
  int64_t reads = clusters[number].points * int64_t(how.indices.size());
  return reads >= kWorthTransposing && reads >= kManyReads * elementsOf(op->getResult(0)) && movesLast(op);
}

bool Fusion::tearsWindow(Operation *op, unsigned number, const Evaluation &how) const {
  Value v = op->getResult(0);
  if (!isWindow(v)) return false;
  const Cluster &cluster = clusters[number];
  size_t work = efforts.find(viewed(v))->second.work;
  bool fits = cluster.work + how.indices.size() * work <= kMostWork;
  return (!fits && work <= kMostWork) || llvm::any_of(how.indices, [&](unsigned index) { return transposed[index]; }) || sumsRows(number);
}

bool Fusion::multipliesWindows(Operation *op, const Evaluation &how) const {
  size_t above = how.indices.size(), below = placesOf(op->getResult(0));
  return !isMovement(op) && above > 1 && below > 1 && above * below > kWindow;
}

bool Fusion::sumsRows(unsigned number) const {
  return llvm::any_of(clusters[number].members, [](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && reductionOf(reduce).kind == Reduction::Rows;
  });
}

bool Fusion::mayJoin(Operation *op, unsigned number, const Evaluation &how) {
  const Cluster &cluster = clusters[number];
  Level where = how.place;
  if (readsOtherTile(op, number) || transposesOften(op, number, how) || tearsWindow(op, number, how) || multipliesWindows(op, how))
    return false;
  if (cluster.reads + furtherReads(op) >= kMostTensors || cluster.work + how.indices.size() * workOf(op) > kMostWork ||
      (how.indices.size() > kMostIndices && !isMovement(op)) ||
      llvm::any_of(how.indices, [&](unsigned index) { return movements[index] > kMostMovements; }))
    return false;
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    auto r = reductionOf(reduce);
    if (r.kind == Reduction::Trivial) return true;
    if (r.kind == Reduction::Rows && cluster.kind == Cluster::Rows) {
      int64_t columns = r.whole / r.rest;
      bool row = where == Level::Row && r.whole == cluster.points && (cluster.columns == 0 || cluster.columns == columns);
      bool grows = where == Level::Full && r.rest == cluster.points && cluster.columns == 0; // the kernel's points become rows
      return row || grows;
    }
    if (r.kind == Reduction::Columns) {
      bool same = cluster.kind == Cluster::Columns && where != Level::Moved && r.whole == cluster.points && r.rest == cluster.columns;
      bool grows = cluster.kind == Cluster::Rows && where == Level::Full && r.rest == cluster.points && cluster.columns == 0;
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
  bool repeated = where == Level::Moved && elementsOf(op->getResult(0)) * 4 <= cluster.points;
  return !repeated || !holdsExpensive(op);
}

bool Fusion::mayKeep(Operation *op, unsigned number, Level where) {
  const Cluster &cluster = clusters[number];
  int64_t elements = elementsOf(op->getResult(0));
  if (isa<ScatterAddOp, CumSumOp>(op) || where == Level::Moved) return false;
  auto reduce = dyn_cast<ReduceOp>(op);
  if (cluster.kind == Cluster::Columns) return reduce && reductionOf(reduce).kind == Reduction::Columns;
  if (cluster.kind != Cluster::Rows) return false;
  if (reduce && reductionOf(reduce).kind != Reduction::Trivial) return true; // as `mayJoin` allows it
  if (where == Level::Full) return elements == cluster.points;
  bool oneRow = elements == 1 && cluster.columns == 0; // for its sake all would be: one thread's
  return !oneRow && elements < cluster.points && cluster.points % elements == 0 &&
         (cluster.columns == 0 || elements * cluster.columns == cluster.points);
}

void Fusion::join(Operation *op, unsigned number, Evaluation how, bool alone) {
  Cluster &cluster = clusters[number];
  Level &where = how.place;
  auto reduce = dyn_cast<ReduceOp>(op);
  auto r = reduce ? reductionOf(reduce) : Reduction{Reduction::Trivial, 0, 0};
  if (auto scatter = dyn_cast<ScatterAddOp>(op)) {
    cluster.kind = Cluster::Scatter;
    cluster.points = elementsOf(scatter.getUpdates());
  } else if (r.kind == Reduction::Rows) {
    if (where == Level::Full) { // grows
      for (Operation *m : cluster.members)
        if (Evaluation &of = evaluated[m][number]; of.place == Level::Full) of.place = Level::Row;
      cluster.points = r.whole;
      where = Level::Row;
    }
    cluster.columns = r.whole / r.rest;
  } else if (r.kind == Reduction::Columns && cluster.kind == Cluster::Rows) {
    cluster.kind = Cluster::Columns;
    cluster.points = r.whole, cluster.columns = r.rest;
  } else if (where == Level::Row && cluster.kind == Cluster::Rows && cluster.columns == 0) {
    cluster.columns = cluster.points / elementsOf(op->getResult(0));
  }
  cluster.work += how.indices.size() * workOf(op);
  cluster.reads += furtherReads(op);
  if (isa<GatherOp>(op)) readBy[number].add(readBelow.lookup(op->getOperand(0)));
  evaluated[op].insert({number, std::move(how)});
  computed[number].push_back(op);
  if (alone) {
    member[op] = number;
    cluster.members.push_back(op);
    extents[number].first = std::min(extents[number].first, position[op]);
  }
}

void Fusion::start(Operation *op) {
  Cluster cluster;
  cluster.points = elementsOf(op->getResult(0));
  Level where = Level::Full;
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    auto r = reductionOf(reduce);
    if (r.kind == Reduction::Rows)
      cluster.points = r.whole, cluster.columns = r.whole / r.rest, where = Level::Row;
    else if (r.kind == Reduction::Columns)
      cluster.kind = Cluster::Columns, cluster.points = r.whole, cluster.columns = r.rest;
  }
  if (auto scatter = dyn_cast<ScatterAddOp>(op)) cluster.kind = Cluster::Scatter, cluster.points = elementsOf(scatter.getUpdates());
  if (isa<CumSumOp>(op)) cluster.kind = Cluster::Scan;
  clusters.push_back(cluster);
  extents.push_back({position[op], position[op]});
  readBy.push_back(isa<GatherOp>(op) ? readBelow.lookup(op->getOperand(0)) : TileRead());
  unsigned number = clusters.size() - 1;
  clusters[number].work = workOf(op);
  clusters[number].reads += furtherReads(op);
  evaluated[op].insert({number, {where}});
  computed.push_back({op});
  member[op] = number;
  clusters[number].members.push_back(op);
}

Clusters Fusion::finish() {
  for (Operation *op : order)
    for (Value v : op->getResults())
      if (auto it = home.find(v); it != home.end()) clusters[it->second].results.push_back(v);
  return {std::move(clusters), std::move(home)};
}

Clusters formClusters(func::FuncOp function) { return Fusion(function).run(); }

} // namespace zero::fuse

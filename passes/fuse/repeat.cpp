//===- repeat.cpp - whether a value is computed again or kept ---------------------------------------------===//
#include "passes/fuse/fusion.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {

namespace {

/// A value read from more tensors than this is never cheap to repeat: the others are not listed.
constexpr size_t kMostLeaves = 32;
/// What is made of two tensors is not made again in more kernels than this: one tensor read in each is cheaper then, though it is written.
constexpr size_t kMostRepeats = 8;
/// As much as is counted of the places and the work of a value.
constexpr size_t kMostPlaces = 128, kMostEffort = 1 << 16;

/// How many of the tensors have about as many elements or more.
int large(ArrayRef<Value> tensors, int64_t elements) {
  return llvm::count_if(tensors, [&](Value t) { return elementsOf(t) * 4 > elements; });
}

/// Whether an element is made of few, which lie near those of its neighbours: not a sum over many, and rows that are looked up only of an
/// image that is small beside them, so that it is read from the cache. (Embeddings of few words are looked up once: a GPU's kernels of
/// norms would need more registers than there are.)
bool readsFew(Operation *op) {
  if (isa<ScatterAddOp, CumSumOp>(op)) return false;
  auto gather = dyn_cast<GatherOp>(op);
  int64_t all = elementsOf(op->getResult(0));
  if (gather && viewed(gather.getInput()).getDefiningOp<GetOp>()) return false;
  return !gather || (elementsOf(gather.getInput()) * 8 <= all && elementsOf(gather.getIndices()) * 8 <= all);
}

} // namespace

void Fusion::learn(Operation *op) {
  for (Value v : op->getResults())
    if (leavesKernels(v)) leaving.insert(v);
  if (isBarrier(op))
    for (Value v : op->getResults()) leaves[v] = {v};
  if (auto get = dyn_cast<GetOp>(op); get && tiles.contains(get.getParameterAttr().getAttr()))
    readBelow[get].tile = get.getParameterAttr().getAttr();
  if (!isBarrier(op) && !tiles.empty())
    for (Value operand : op->getOperands())
      if (TileRead read = readBelow.lookup(operand); read.tile) readBelow[op->getResult(0)].add(read);
  if (isBarrier(op) || isa<ReshapeOp>(op)) return;
  Value v = op->getResult(0);
  auto computes = [&](Value operand) { // in the same kernel, as far as can be told
    Operation *from = viewed(operand).getDefiningOp();
    return from && !isBarrier(from) && !leaving.contains(viewed(operand)) && !from->hasTrait<Accumulates>();
  };
  if (isExpensive(op) || llvm::any_of(op->getOperands(), [&](Value o) { return computes(o) && holdsExpensive(viewed(o).getDefiningOp()); }))
    holdingExpensive.insert(op);

  SmallVector<Value, 2> found;
  bool isReduction = isa<ReduceOp>(op) && reductionOf(cast<ReduceOp>(op)).kind != Reduction::Trivial;
  if ((!isFree(op) && leaving.contains(v)) || isReduction || !readsFew(op)) {
    found.push_back(v);
  } else {
    for (Value operand : op->getOperands())
      for (Value leaf : leavesOf(operand))
        if (found.size() < kMostLeaves && !llvm::is_contained(found, leaf)) found.push_back(leaf);
    if (!isFree(op) && !v.hasOneUse() && large(found, elementsOf(v)) > 1) found.assign(1, v);
  }
  if (!llvm::is_contained(found, v)) learnEffort(op);
  leaves[v] = std::move(found);
}

void Fusion::learnEffort(Operation *op) {
  bool free = isFree(op), moves = isMovement(op) && !free;
  Effort effort{{}, free ? 0 : workOf(op)};
  for (Value operand : op->getOperands()) {
    SmallVector<Place, 2> places{{viewed(operand), 0}}; // one, if it is in memory itself
    if (auto known = efforts.find(viewed(operand)); known != efforts.end()) {
      effort.work += known->second.work;
      places = known->second.places;
    }
    if (!moves) {
      for (const Place &place : places)
        if (!llvm::is_contained(effort.places, place) && effort.places.size() < kMostPlaces) effort.places.push_back(place);
    } else if (places.size() > effort.places.size()) { // one of several operands is read
      effort.places.clear();
      for (auto [leaf, path] : places) effort.places.push_back({leaf, llvm::hash_combine(op, path)});
    }
  }
  effort.work = std::min(effort.work, kMostEffort);
  efforts[op->getResult(0)] = std::move(effort);
}

size_t Fusion::placesOf(Value v) const {
  auto effort = efforts.find(viewed(v));
  if (effort == efforts.end()) return 1;
  llvm::SmallDenseMap<Value, size_t, 4> counts;
  size_t most = 0;
  for (auto [leaf, path] : effort->second.places) most = std::max(most, ++counts[leaf]);
  return most;
}

ArrayRef<Value> Fusion::leavesOf(Value v) const { return leaves.find(viewed(v))->second; }

bool Fusion::cheapToRepeat(Operation *op, const Consumers &consumers) {
  if (!readsFew(op) || isWindow(op->getResult(0))) return false;
  if (auto reduce = dyn_cast<ReduceOp>(op); reduce && reductionOf(reduce).kind != Reduction::Trivial) return false;
  SmallVector<Value, 4> from;
  for (Value operand : op->getOperands())
    for (Value leaf : leavesOf(operand))
      if (!llvm::is_contained(from, leaf)) from.push_back(leaf);
  // Gathered rows that only this operation reads would have to be kept in its place.
  if (llvm::any_of(op->getOperands(), [](Value v) { return isa_and_nonnull<GatherOp>(v.getDefiningOp()) && v.hasOneUse(); })) return false;
  int64_t points =
      elementsOf(op->getResult(0)); // what counts is what the kernels touch anyway: values per row weigh nothing beside the rows
  for (auto &[cluster, where] : consumers) points = std::max(points, clusters[cluster].points);
  int tensors = large(from, points);
  // Sums over rows cannot share the kernel that would write the value: reading two tensors there costs no more.
  int others = llvm::count_if(consumers, [&](auto &c) { return clusters[c.first].kind != Cluster::Columns; });
  return tensors <= 1 || (tensors == 2 && others <= 1 && consumers.size() <= kMostRepeats);
}

bool Fusion::computesWindow(unsigned number) const {
  return llvm::any_of(computed[number], [&](Operation *op) { return isWindow(op->getResult(0)); });
}

bool Fusion::costsNothing(Operation *op) {
  auto [known, fresh] = free.try_emplace(op, false);
  if (fresh) known->second = isFree(op);
  return known->second;
}

bool Fusion::isWantedElsewhere(unsigned from, unsigned in) {
  DenseSet<Operation *> inside(computed[from].begin(), computed[from].end()); // of the two as one kernel
  inside.insert(computed[in].begin(), computed[in].end());
  DenseMap<Operation *, bool> known; // whether an operation needs a sum over a row
  auto needsSum = [&](Operation *op, auto &self) -> bool {
    if (auto reduce = dyn_cast<ReduceOp>(op); reduce && reductionOf(reduce).kind == Reduction::Rows) return true;
    if (auto it = known.find(op); it != known.end()) return it->second;
    bool needs = llvm::any_of(op->getOperands(), [&](Value v) {
      Operation *d = v.getDefiningOp();
      return d && (inside.contains(d) || costsNothing(d)) && self(d, self);
    });
    return known[op] = needs;
  };
  auto isMoved = [&](const Use &use) {
    auto user = evaluated.find(use.user);
    if (user == evaluated.end()) return false;
    auto *there = user->second.find(in);
    return there != user->second.end() && levelIn(clusters[in], use, there->second.place).first == Level::Moved;
  };
  return llvm::any_of(computed[from], [&](Operation *op) {
    Value v = op->getResult(0);
    return (isWindow(v) || needsSum(op, needsSum)) && llvm::any_of(usesOf(v), isMoved);
  });
}

} // namespace zero::fuse

//===- neighbours.cpp - order of kernels, and kernels side by side ------------------------------------------===//
#include "passes/fuse/former.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {

namespace {

/// Two kernels further apart than this many operations are not looked at for merging: the tensors they share would be
/// read again from memory anyway, and the search stays linear in the size of the model.
constexpr int kNear = 512;

/// A path from one kernel to another may lead through a kernel some of whose operations stand before both; further back than this
/// it is not looked for (`outline` takes a kernel apart that turns out to need itself).
constexpr int kSlack = 256;

/// A kernel of more operations gains nothing by another: its values are more than the registers hold.
constexpr size_t kMostMembers = 200;

bool fit(const Cluster &a, const Cluster &b) {
  if (a.kind != b.kind || a.points != b.points) return false;
  if (a.kind == Cluster::Columns) return a.columns == b.columns;
  return a.kind == Cluster::Rows && (a.columns == b.columns || !a.columns || !b.columns);
}

} // namespace

int Former::first(unsigned cluster) const {
  int p = INT_MAX;
  for (Operation *m : clusters[cluster].members) p = std::min(p, position.lookup(m));
  return p;
}
int Former::last(unsigned cluster) const {
  int p = -1;
  for (Operation *m : clusters[cluster].members) p = std::max(p, position.lookup(m));
  return p;
}

SmallVector<Operation *> Former::neededBy(unsigned cluster, int from, llvm::SetVector<Value> *tensors) {
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

bool Former::reaches(SmallVector<Operation *> work, function_ref<bool(Operation *)> target, int from) {
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

bool Former::reachesOutside(unsigned cluster, Operation *op) {
  auto needed = neededBy(cluster, position[op]);
  llvm::erase(needed, op);
  return reaches(
      std::move(needed), [&](Operation *o) { return o == op; }, position[op]);
}

bool Former::independent(unsigned a, unsigned b) {
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

void Former::mergeNeighbours() {
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
            clusters[a].members.size() + clusters[b].members.size() > kMostMembers || clusters[a].work + clusters[b].work > kMostWork)
          continue;
        if (!independent(a, b)) continue;
        merge(a, b);
        now[b] = a;
      }
}

void Former::merge(unsigned a, unsigned b) {
  Cluster &into = clusters[a], &from = clusters[b];
  for (Operation *m : from.members) {
    member[m] = a;
    into.members.push_back(m);
    for (Value v : m->getResults())
      if (auto it = home.find(v); it != home.end() && it->second == b) it->second = a;
  }
  into.columns = std::max(into.columns, from.columns);
  into.work += from.work;
  from.members.clear();
  from.merged = true;
}

} // namespace zero::fuse

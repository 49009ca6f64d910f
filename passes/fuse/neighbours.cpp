//===- neighbours.cpp - order of kernels, and kernels side by side ------------------------------------------===//
#include "passes/fuse/fusion.h"
#include <map>
#include <set>

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

/// So often a kernel is asked for a path to one other kernel before all kernels that it needs are found at once.
constexpr unsigned kWorthAll = 1;

/// A kernel of more operations gains nothing by another: its values are more than the registers hold.
constexpr size_t kMostMembers = 200;

bool fit(const Cluster &a, const Cluster &b) {
  if (a.kind != b.kind || a.points != b.points) return false;
  if (a.kind == Cluster::Columns) return a.columns == b.columns;
  return a.kind == Cluster::Rows && (a.columns == b.columns || !a.columns || !b.columns);
}

} // namespace

SmallVector<Operation *> Fusion::neededBy(unsigned cluster, int from, llvm::SetVector<Value> *tensors) {
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

bool Fusion::walkBack(SmallVector<Operation *> work, int from, function_ref<bool(Operation *, Operation *)> meets) {
  DenseSet<Operation *> seen(work.begin(), work.end());
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    auto visit = [&](Operation *o) {
      for (Value v : o->getOperands()) {
        Operation *d = v.getDefiningOp();
        if (!d || position.lookup(d) < from - kSlack) continue;
        if (meets(op, d)) return true;
        if (seen.insert(d).second) work.push_back(d);
      }
      return false;
    };
    if (visit(op)) return true;
    if (auto it = member.find(op); it != member.end() && llvm::any_of(clusters[it->second].members, visit)) return true;
  }
  return false;
}

bool Fusion::reaches(SmallVector<Operation *> work, function_ref<bool(Operation *)> target, int from) {
  return llvm::any_of(work, target) || walkBack(std::move(work), from, [&](Operation *, Operation *d) { return target(d); });
}

bool Fusion::reachesOutside(unsigned cluster, Operation *op) {
  auto needed = neededBy(cluster, position[op]);
  llvm::erase(needed, op);
  return reaches(
      std::move(needed), [&](Operation *o) { return o == op; }, position[op]);
}

bool Fusion::needsIndirectly(unsigned from, unsigned to) {
  IndirectNeeds &needs = indirectNeeds[from];
  if (needs.merges != merges) needs = {merges};
  int first = extents[to].first;
  auto clusterOf = [&](Operation *op) {
    auto it = member.find(op);
    return it == member.end() ? -1 : int(it->second);
  };
  if (needs.asked++ < kWorthAll && first < needs.first) { // for this one alone, which ends with the first path
    auto isTo = [&](Operation *op) { return clusterOf(op) == int(to); };
    auto needed = neededBy(from, first);
    llvm::erase_if(needed, isTo); // a direct edge does not matter
    return reaches(std::move(needed), isTo, first);
  }
  if (first < needs.first) {
    needs.first = std::min(first, extents[from].last - kNear); // for most that come next, too
    walkBack(neededBy(from, needs.first), needs.first, [&](Operation *op, Operation *d) {
      int of = clusterOf(d);
      if (of >= 0 && of != clusterOf(op)) needs.clusters.insert(unsigned(of));
      return false;
    });
  }
  return needs.clusters.contains(to);
}

bool Fusion::independent(unsigned a, unsigned b) { return !needsIndirectly(a, b) && !needsIndirectly(b, a); }

llvm::MapVector<Value, SmallVector<unsigned>> Fusion::touching() {
  llvm::MapVector<Value, SmallVector<unsigned>> kernels;
  for (unsigned c = 0; c < clusters.size(); ++c) {
    llvm::SetVector<Value> tensors;
    neededBy(c, 0, &tensors);
    for (Operation *m : clusters[c].members)
      if (auto it = home.find(m->getResult(0)); it != home.end() && it->second == c) tensors.insert(m->getResult(0));
    for (Value v : tensors)
      if (elementsOf(v) * 4 > clusters[c].points) {
        // Results of one library call count as one tensor: what is done with them alike is done at once.
        Value key = isa<BlockArgument>(v) || !isBarrier(v.getDefiningOp()) ? v : v.getDefiningOp()->getResult(0);
        if (kernels[key].empty() || kernels[key].back() != c) kernels[key].push_back(c);
      }
  }
  return kernels;
}

bool Fusion::mayMerge(unsigned a, unsigned b) {
  return a != b && fit(clusters[a], clusters[b]) && std::abs(extents[a].last - extents[b].last) <= kNear &&
         clusters[a].members.size() + clusters[b].members.size() <= kMostMembers && clusters[a].work + clusters[b].work <= kMostWork &&
         (!readBy[a].tile || !readBy[b].tile || readBy[a].tile == readBy[b].tile) && !isWantedElsewhere(a, b) && !isWantedElsewhere(b, a) &&
         !(sumsRows(a) && computesWindow(b)) && !(sumsRows(b) && computesWindow(a)) && independent(a, b);
}

void Fusion::mergeNeighbours() {
  std::vector<unsigned> now(clusters.size()); // the cluster it has become part of
  for (unsigned c = 0; c < now.size(); ++c) now[c] = c;
  auto current = [&](unsigned c) {
    while (now[c] != c) c = now[c] = now[now[c]];
    return c;
  };
  for (auto &[tensor, list] : touching()) {
    std::set<std::pair<int, size_t>> byLast; // places in the list, by where what stands there now ends
    std::map<unsigned, SmallVector<size_t>> places;
    for (auto [i, c] : llvm::enumerate(list)) {
      byLast.insert({extents[current(c)].last, i});
      places[current(c)].push_back(i);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      unsigned a = current(list[i]);
      // Those in reach after `after`, in the order of the list.
      auto near = [&](size_t after) {
        SmallVector<size_t> found;
        for (auto at = byLast.lower_bound({extents[a].last - kNear, 0}); at != byLast.end() && at->first <= extents[a].last + kNear; ++at)
          if (at->second > after) found.push_back(at->second);
        llvm::sort(found);
        return found;
      };
      SmallVector<size_t> candidates = near(i);
      for (size_t k = 0; k < candidates.size(); ++k) {
        size_t j = candidates[k];
        unsigned b = current(list[j]);
        if (!mayMerge(a, b)) continue;
        auto move = [&](unsigned from, int last) {
          for (size_t place : places[from]) {
            byLast.erase({extents[from].last, place});
            byLast.insert({last, place});
          }
        };
        int last = std::max(extents[a].last, extents[b].last);
        move(a, last), move(b, last);
        places[a].append(places[b]);
        places.erase(b);
        merge(a, b);
        now[b] = a;
        candidates = near(j);
        k = size_t(-1);
      }
    }
  }
}

void Fusion::merge(unsigned a, unsigned b) {
  Cluster &into = clusters[a], &from = clusters[b];
  for (Operation *m : from.members) {
    member[m] = a;
    into.members.push_back(m);
    for (Value v : m->getResults())
      if (auto it = home.find(v); it != home.end() && it->second == b) it->second = a;
  }
  for (Operation *op : computed[b]) {
    auto &in = evaluated[op];
    auto [there, fresh] = in.insert({a, in[b]});
    if (fresh)
      computed[a].push_back(op);
    else if (there->second.place != in[b].place)
      there->second.place = Level::Moved;
    in.erase(b);
  }
  computed[b].clear();
  into.columns = std::max(into.columns, from.columns);
  into.work += from.work;
  into.reads += from.reads;
  readBy[a].add(readBy[b]);
  extents[a] = {std::min(extents[a].first, extents[b].first), std::max(extents[a].last, extents[b].last)};
  from.members.clear();
  from.merged = true;
  ++merges;
}

} // namespace zero::fuse

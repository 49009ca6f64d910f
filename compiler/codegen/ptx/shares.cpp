//===- shares.cpp - what a thread of a GPU works on at once -----------------------------------------------===//
#include "compiler/codegen/ptx/gpu_emitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace zero::codegen {

void GpuEmitter::bindVector(Value vector, ArrayRef<unsigned> dims) {
  Value at = vector;
  if (dims.size() > 1) {
    int64_t vectors = p.size(dims.back()) / lanes;
    at = remainder(vector, vectors);
    bindOuter(quotient(vector, vectors), dims.drop_back());
  }
  scopes.back().bound.push_back({dims.back(), times(at, lanes)});
}

GpuEmitter::AtOne GpuEmitter::several(unsigned count, int64_t step, AtOne body) {
  return [this, count, step, body = std::move(body)](Value first, Values inside) {
    Block *block = scopes.back().block;
    Operation *before = block->empty() ? nullptr : &block->back();
    for (unsigned copy = 0; copy < count; ++copy) {
      scopes.push_back(Scope(block, scopes.back().before));
      goTo(scopes.size() - 1);
      inside = body(plus(first, number(copy * step)), std::move(inside));
      scopes.pop_back();
    }
    if (count > 1) storeLast(*block, before);
    return inside;
  };
}

Emitter::Values GpuEmitter::share(ArrayRef<unsigned> dims, Value first, int64_t step, unsigned atOnce, Values carried, const Body &body) {
  int64_t vectors = p.points(dims) / lanes, round = step * atOnce;
  // Columns that were added to a row are its last ones: no vectors but those of the last time around ask whether they are.
  int64_t below = dims == ArrayRef(p.inner) ? insideOf() / lanes : vectors;
  int64_t inside = below == vectors ? vectors : below / step * step, whole = inside / round * round;
  auto each = [&](Value mine, Values inside) {
    bindVector(mine, dims);
    llvm::SaveAndRestore<std::optional<unsigned>> inLanes(lane, dims.back());
    llvm::SaveAndRestore<Value> working(inShare, mine);
    return body(std::move(inside));
  };
  auto go = [&](Value from, int64_t to, unsigned count) {
    carried = loop(scopes.size() - 1, from, number(to), step * count, std::nullopt, std::move(carried), several(count, step, each));
    goTo(scopes.size() - 1);
  };
  {
    llvm::SaveAndRestore<bool> areInside(isInside, inside < vectors);
    size_t assumed = holding.size();
    if (isInside) holding.append(boundsOfColumns());
    if (whole) go(first, whole, atOnce);
    if (whole < inside) go(plus(first, number(whole)), inside, 1);
    holding.truncate(assumed);
  }
  if (inside < vectors) go(plus(first, number(inside)), vectors, 1);
  return carried;
}

bool GpuEmitter::isBound(const Node &n) const {
  if (p.inner.size() != 1 || n.kind != Node::Apply || n.fn != Fn::Lt) return false;
  const Node &column = p.nodes[n.operands[0]], &bound = p.nodes[n.operands[1]];
  return column.kind == Node::Position && column.index == nn::Index::atom(p.inner[0]) && bound.kind == Node::Constant &&
         !isFloat(bound.type);
}

SmallVector<Guard> GpuEmitter::boundsOfColumns() const {
  SmallVector<Guard> bounds;
  for (const Node &n : p.nodes)
    for (const Guard &g : n.guards) {
      bool isBound = p.inner.size() == 1 && g.index == nn::Index::atom(p.inner[0]) && g.low <= 0 && g.step == 1;
      if (isBound && g.high > p.points(p.inner) / 2) bounds.push_back(g); // most of the row is no addition
    }
  return bounds;
}

int64_t GpuEmitter::insideOf() const {
  int64_t inside = p.points(p.inner);
  for (const Node &n : p.nodes)
    if (isBound(n)) inside = std::clamp<int64_t>(p.nodes[n.operands[1]].whole, 0, inside);
  for (const Guard &g : boundsOfColumns()) inside = std::min(inside, g.high);
  return inside;
}

/// What was added to the block after `before`, with its stores at the end: a compiler moves no load above a store that may be of the same
/// bytes, so that the load would begin after it. It is of the same bytes where a result lies on an operand, but of that each vector reads
/// its own elements alone.
void GpuEmitter::storeLast(Block &block, Operation *before) {
  auto added = llvm::make_range(before ? std::next(before->getIterator()) : block.begin(), block.end());
  SmallVector<Operation *> stores;
  for (Operation &op : added)
    if (isa<vector::StoreOp, memref::StoreOp>(op)) stores.push_back(&op);
  for (Operation *store : stores) store->moveBefore(&block, block.end());
}

/// Vectors of a row that a thread works on at once, so that `kLoads` loads are under way: of the loads that lead to `roots`.
unsigned GpuEmitter::atOnce(ArrayRef<int> roots) const {
  constexpr unsigned kLoads = 8, kMost = 4;
  auto loads = unsigned(llvm::count_if(p.below(roots, p.reductions), [&](int n) {
    return p.nodes[n].kind == Node::Load && llvm::any_of(p.inner, [&](unsigned dim) { return p.nodes[n].depends[dim]; });
  }));
  int64_t each = insideOf() / lanes / d.team; // vectors of a thread
  auto most = unsigned(std::clamp<int64_t>(std::min<int64_t>(each, kLoads / std::max(loads, 1u)), 1, kMost));
  for (unsigned count = most; count > most / 2; --count)
    if (each % count == 0) return count;
  // Those that are left over wait for memory one by one.
  auto waits = [&](unsigned count) { return each / count + each % count; };
  unsigned best = most;
  for (unsigned count = most; count > most / 2; --count)
    if (waits(count) < waits(best)) best = count;
  return best;
}

SmallVector<int> GpuEmitter::operandsOf(ArrayRef<int> reductions) const {
  SmallVector<int> operands;
  for (int r : reductions) operands.push_back(p.nodes[r].operands[0]);
  return operands;
}

} // namespace zero::codegen

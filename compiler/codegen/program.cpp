//===- program.cpp - shape and cost of a kernel's program ----------------------------------------===//
#include "compiler/codegen/program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace zero::codegen {

unsigned bytesOf(Scalar type) {
  switch (type) {
  case Scalar::F64:
  case Scalar::I64:
    return 8;
  case Scalar::F32:
  case Scalar::I32:
    return 4;
  case Scalar::F16:
  case Scalar::BF16:
    return 2;
  case Scalar::Bool:
    return 1;
  }
  return 0;
}

int64_t Program::points(const std::vector<unsigned> &dims) const {
  int64_t n = 1;
  for (unsigned d : dims) n *= size(d);
  return n;
}

int64_t Program::extent() const {
  switch (kind) {
  case Rows:
    if (!sums.empty()) return points(outer) / points(reduced);
    return chunked() ? llvm::divideCeil(points(inner), kChunk) : points(outer);
  case Columns: {
    int64_t last = inner.empty() ? 1 : size(inner.back());
    return points(inner) / last * llvm::divideCeil(last, kColumns);
  }
  case Scatter:
    return llvm::divideCeil(points(reduced), kBlock);
  case Scan:
    return points(outer);
  case Tiles: // rows of the scores
    return attention.batch * attention.heads * attention.queries;
  }
  return 0;
}

bool Program::oncePerRow(const Node &node) const {
  for (size_t a = 0; a < node.depends.size(); ++a)
    if (node.depends[a] && !llvm::is_contained(outer, a)) return false;
  return true;
}

bool Program::guarded(const Index &index) const {
  return llvm::any_of(index.terms, [&](const Term &t) {
    const Atom &a = space.atoms[t.atom];
    return a.kind == Atom::Value ? nodes[a.node].guarded : a.kind != Atom::Dim && guarded(a.of);
  });
}

std::vector<int> Program::below(llvm::ArrayRef<int> roots, llvm::ArrayRef<int> leaves) const {
  std::vector<bool> wanted(nodes.size(), false);
  auto visitIndex = [&](auto &self, const Index &index) -> void {
    for (const Term &t : index.terms) {
      const Atom &a = space.atoms[t.atom];
      if (a.kind == Atom::Value)
        wanted[a.node] = true;
      else if (a.kind != Atom::Dim)
        self(self, a.of);
    }
  };
  for (int r : roots)
    if (r >= 0) wanted[r] = true;
  std::vector<int> found;
  for (int i = int(nodes.size()); i-- > 0;) { // operands have smaller numbers
    if (!wanted[i]) continue;
    found.push_back(i);
    if (llvm::is_contained(leaves, i)) continue;
    for (int o : nodes[i].operands) wanted[o] = true;
    visitIndex(visitIndex, nodes[i].index);
    for (const Guard &g : nodes[i].guards) visitIndex(visitIndex, g.index);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

//===----------------------------------------------------------------------===//
// Collapsing dimensions
//===----------------------------------------------------------------------===//

namespace {

template <typename Body> void forEachIndex(Program &p, Body body) {
  for (Node &n : p.nodes) {
    body(n.index);
    for (Guard &g : n.guards) body(g.index);
    for (Guard &g : n.otherwise) body(g.index);
  }
  for (Atom &a : p.space.atoms)
    if (a.kind == Atom::Quotient || a.kind == Atom::Remainder) body(a.of);
  for (auto *stores : {&p.stores, &p.sums})
    for (Store &s : *stores) body(s.index);
}

bool walksAsOne(Program &p, unsigned outer, unsigned inner) {
  bool one = true;
  forEachIndex(p, [&](Index &i) { one &= i.scaleOf(outer) == i.scaleOf(inner) * p.size(inner); });
  return one;
}

void fuse(Program &p, unsigned outer, unsigned inner) {
  forEachIndex(p, [&](Index &i) { i = i.without(outer); });
  p.space.atoms[inner].size *= p.space.atoms[outer].size;
  for (auto *dims : {&p.outer, &p.inner, &p.reduced}) llvm::erase(*dims, outer);
  for (Node &n : p.nodes) llvm::erase(n.dims, outer);
}

void fuseNeighbours(Program &p, std::vector<unsigned> dims) {
  for (size_t i = dims.size(); i-- > 1;)
    if (walksAsOne(p, dims[i - 1], dims[i])) {
      fuse(p, dims[i - 1], dims[i]);
      dims[i - 1] = dims[i];
    }
}

/// Write `dim` as (returned outer dimension, dim of size `inner`).
unsigned splitOff(Program &p, unsigned dim, int64_t inner) {
  int64_t outer = p.size(dim) / inner;
  unsigned fresh = p.space.dim(outer, -1, 0);
  p.space.atoms[dim].size = inner;
  forEachIndex(p, [&](Index &i) {
    if (int64_t scale = i.scaleOf(dim)) i = i + Index::atom(fresh, scale * inner);
  });
  return fresh;
}

int64_t divisorNear(int64_t n, int64_t low) {
  for (int64_t d = low; d <= n / 2 && d < low * 8; ++d)
    if (n % d == 0) return d;
  return 0;
}

/// Which dimensions of a map the extent counts: enough of them to give every thread work, few enough that an
/// iteration is worth its index arithmetic.
void chooseOuter(Program &p) {
  constexpr int64_t kEnoughWork = 1024, kEnoughPieces = 32;
  std::vector<unsigned> dims = std::move(p.inner);
  p.inner.clear();
  if (dims.empty()) dims.push_back(p.space.dim(1, -1, 0)); // a single element
  if (dims.size() == 1) {
    p.inner = dims;
    return;
  }
  int64_t work = 1, pieces = 1;
  for (unsigned d : dims) pieces *= p.size(d);
  do {
    work *= p.size(dims.back());
    pieces /= p.size(dims.back());
    p.inner.insert(p.inner.begin(), dims.back());
    dims.pop_back();
  } while (!dims.empty() && work < kEnoughWork && pieces / p.size(dims.back()) >= kEnoughPieces);
  p.outer = dims;
  if (pieces < kEnoughPieces && work >= kEnoughWork * kEnoughPieces)
    if (int64_t inner = divisorNear(p.size(p.inner.front()), p.inner.size() == 1 ? kEnoughWork : 1))
      p.outer.push_back(splitOff(p, p.inner.front(), inner));
}

} // namespace

void collapse(Program &p) {
  // Dimensions nothing depends on but the loop structure (sizes of 1) never became atoms.
  bool map = p.kind == Program::Rows && p.reductions.empty();
  bool perRow =
      map && !llvm::all_of(p.stores, [&](const Store &s) { return p.outputs[s.result].elements == p.points(p.outer) * p.points(p.inner); });
  if (map && !perRow) {
    p.inner.insert(p.inner.begin(), p.outer.begin(), p.outer.end());
    p.outer.clear();
  }
  if (p.inner.empty() && !(map && !perRow)) p.inner.push_back(p.space.dim(1, -1, 0));
  if (p.outer.empty() && p.kind == Program::Rows && (!p.reductions.empty() || perRow))
    p.outer.push_back(p.space.dim(1, -1, 0)); // one row: what depends on its reductions, or is one for all of it, belongs inside the loop
  fuseNeighbours(p, p.outer);
  fuseNeighbours(p, p.inner);
  fuseNeighbours(p, p.reduced);
  std::vector<std::vector<unsigned>> inlined;
  for (size_t n = 0; n < p.nodes.size(); ++n)
    if (p.nodes[n].kind == Node::Reduce && !llvm::is_contained(p.reductions, int(n)))
      inlined.emplace_back(p.nodes[n].dims.begin(), p.nodes[n].dims.end());
  for (auto &dims : inlined) fuseNeighbours(p, dims);
  if (map && !perRow) chooseOuter(p);
}

//===----------------------------------------------------------------------===//
// Derived facts
//===----------------------------------------------------------------------===//

namespace {

void merge(std::vector<bool> &into, const std::vector<bool> &from) {
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i]) into[i] = true;
}

void mark(const Program &p, const Index &index, std::vector<bool> &depends, int &level) {
  for (const Term &t : index.terms) {
    const Atom &a = p.space.atoms[t.atom];
    if (a.kind == Atom::Dim) {
      depends[t.atom] = true;
    } else if (a.kind == Atom::Value) {
      merge(depends, p.nodes[a.node].depends);
      level = std::max(level, p.nodes[a.node].level);
    } else {
      mark(p, a.of, depends, level);
    }
  }
}

} // namespace

void derive(Program &p) {
  for (auto [i, n] : llvm::enumerate(p.nodes)) {
    n.depends.assign(p.space.atoms.size(), false);
    n.level = 0;
    n.guarded = !n.guards.empty() || p.guarded(n.index);
    mark(p, n.index, n.depends, n.level);
    for (const Guard &g : n.guards) mark(p, g.index, n.depends, n.level);
    for (int o : n.operands) {
      merge(n.depends, p.nodes[o].depends);
      n.guarded |= p.nodes[o].guarded;
      n.level = std::max(n.level, p.nodes[o].level);
    }
    for (unsigned d : n.dims) n.depends[d] = false;
    if (llvm::is_contained(p.reductions, int(i))) {
      ++n.level;
      for (unsigned d : p.kind == Program::Columns ? p.inner : p.outer) // known once the row (the chunk) is being worked on
        n.depends[d] = true;
    }
  }
}

//===----------------------------------------------------------------------===//
// In place, cost
//===----------------------------------------------------------------------===//

std::vector<std::pair<unsigned, unsigned>> inplacePairs(const Program &p) {
  std::vector<std::pair<unsigned, unsigned>> pairs;
  if (p.kind == Program::Tiles) return pairs;   // others read the operands for as long as any of them runs
  if (p.kind == Program::Columns) return pairs; // results are small, and a chunk of columns may be read while another is written
  auto dependsOnInner = [&](const Node &n) { return llvm::any_of(p.inner, [&](unsigned d) { return n.depends[d]; }); };
  std::vector<bool> updates(p.nodes.size(), false);
  for (int n : p.below({p.scatterRow, p.scatterValue})) updates[n] = true;
  for (const Store &s : p.stores) {
    // Where the row of the store begins, if its columns lie side by side.
    Index row = s.index;
    int64_t columns = 1;
    for (unsigned d : llvm::reverse(p.inner)) {
      if (s.index.scaleOf(d) != columns) columns = 0;
      row = row.without(d);
      columns *= p.size(d);
    }
    bool perRow = p.kind == Program::Rows && !p.chunked() && p.outputs[s.result].elements < p.points(p.outer) * p.points(p.inner);
    if (perRow && !p.sums.empty()) continue; // a GPU's threads read what is one per row as they come to it
    bool rowByRow = p.kind == Program::Rows && !p.chunked() && columns > 0 && p.sums.empty();
    for (unsigned a = 0; a < p.inputs.size(); ++a) {
      if (p.inputs[a].type != p.outputs[s.result].type || p.inputs[a].elements != p.outputs[s.result].elements) continue;
      bool allowed = true;
      for (auto [i, n] : llvm::enumerate(p.nodes)) {
        if (n.kind != Node::Load || n.arg != a) continue;
        auto [low, high] = p.space.range(n.index - row);
        bool same = n.index == s.index && (!perRow || !dependsOnInner(n)); // a row's own result is written ahead of its columns
        // Read ahead of the row's stores. An index that needs a reduction of the row (a level above 0) may be known beside them only.
        bool before = rowByRow && p.oncePerRow(n) && n.level == 0 && low >= 0 && high < columns;
        allowed &= (same || before) && !updates[i];
      }
      if (allowed) pairs.push_back({s.result, a});
    }
  }
  return pairs;
}

Work workOf(const Program &p) {
  auto evaluations = [&](const Node &n) {
    uint64_t count = 1;
    for (size_t a = 0; a < n.depends.size(); ++a)
      if (n.depends[a] || llvm::is_contained(n.dims, a)) count *= p.size(a);
    return count;
  };
  Work work{0, 0};
  std::vector<uint64_t> reads(p.inputs.size(), 0);
  for (const Node &n : p.nodes) {
    uint64_t count = evaluations(n);
    if (n.kind == Node::Load) reads[n.arg] += count;
    if (n.kind != Node::Apply && n.kind != Node::Reduce) continue;
    work.flops += count * (isTranscendental(n.fn) ? 16 : 1);
  }
  if (p.kind == Program::Tiles) { // as if each tensor went through memory once
    work.flops = 2 * p.attention.multiplyAdds;
    for (auto [input, count] : llvm::zip(p.inputs, reads)) count = uint64_t(input.elements);
  }
  for (auto [input, count] : llvm::zip(p.inputs, reads)) work.bytes += std::min<uint64_t>(input.elements, count) * bytesOf(input.type);
  for (const Argument &output : p.outputs) work.bytes += output.elements * bytesOf(output.type);
  return work;
}

} // namespace zero::codegen

//===- parts.cpp - rows whose columns are summed part by part, on a GPU -----------------------------------===//
// A block goes over the rows of its part. A thread has the same columns of each, a vector, so that their sums stay in its registers, and
// what it has loaded of a row stays there until the row is written: rows are read once. Sums along a row are joined by the whole block,
// of several rows at once, so that threads wait for each other less often and more loads are under way. Where registers suffice for few
// rows alone, the next ones are loaded before these are joined.
#include "compiler/codegen/ptx/gpu_emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/SaveAndRestore.h"
#include <climits>
#include <map>

using namespace mlir;

namespace zero::codegen {

void GpuEmitter::emitParts() {
  int64_t vectors = p.points(p.inner) / lanes;
  Value mine = thread, counts;
  if (vectors < d.threads) { // threads beyond the last column do as the last one's, and count for nothing
    counts = below(thread, number(vectors));
    mine = b.create<arith::MinUIOp>(loc, thread, number(vectors - 1));
  }
  bindVector(mine, p.inner);
  bindOuter(block, ArrayRef(p.outer).drop_back(p.reduced.size()));
  lane = p.inner.back();
  SmallVector<int> sums;
  for (const Store &s : p.sums) sums.push_back(s.node);
  int64_t rows = p.points(p.reduced);
  std::vector<int> loads;
  if (d.ahead) loads = loadsOfRow();
  // What is carried: the sums, and what is loaded of the next rows.
  Values start = initial(sums, 1);
  start.append(loadRows(number(0), loads));
  Values all = loop(0, number(0), number(rows), d.width, std::nullopt, std::move(start), [&](Value first, Values carried) {
    Values loaded(ArrayRef<Value>(carried).drop_front(sums.size())), next;
    if (d.ahead) // after the last rows these once more
      next = loadRows(b.create<arith::MinUIOp>(loc, plus(first, number(d.width)), number(rows - d.width)), loads);
    carried.truncate(sums.size());
    Values now = rowsOfPart(first, counts, std::move(carried), loads, loaded);
    now.append(next);
    return now;
  });
  goTo(0);
  for (auto [node, sum] : llvm::zip(sums, all)) scopes.back().values[node] = sum;
  if (counts)
    when(counts, [&] { storeAll(p.sums); });
  else
    storeAll(p.sums);
  lane.reset();
}

std::vector<int> GpuEmitter::madeOfRow() const {
  std::vector<int> roots = p.reductions;
  for (const auto *stores : {&p.stores, &p.sums})
    for (const Store &s : *stores) roots.push_back(s.node);
  return p.below(roots);
}

/// The vectors that each row has of its own, whatever stands in it.
std::vector<int> GpuEmitter::loadsOfRow() const {
  std::vector<int> loads;
  for (int n : madeOfRow()) {
    const Node &node = p.nodes[n];
    bool ofRow = node.depends[p.inner.back()] && llvm::any_of(p.reduced, [&](unsigned dim) { return node.depends[dim]; });
    if (node.kind == Node::Load && node.level == 0 && !node.guarded && ofRow) loads.push_back(n);
  }
  return loads;
}

/// `loads` of the `width` rows from `first` on, row by row.
Emitter::Values GpuEmitter::loadRows(Value first, ArrayRef<int> loads) {
  Values loaded;
  for (unsigned row = 0; row < d.width && !loads.empty(); ++row) {
    goTo(scopes.size() - 1);
    Value number = plus(first, this->number(row));
    scopes.push_back(Scope(scopes.back().block, scopes.back().before));
    bindOuter(number, p.reduced);
    for (int n : loads) loaded.push_back(value(n));
    scopes.pop_back();
  }
  goTo(scopes.size() - 1);
  return loaded;
}

/// A scope for each row, kept from the loads to the stores.
class GpuEmitter::RowsOfPart {
public:
  RowsOfPart(GpuEmitter &emitter, Value first);
  ~RowsOfPart() { e.scopes.pop_back(); }

  void load(ArrayRef<int> loads, ArrayRef<Value> loaded);
  void reduce(ArrayRef<int> reductions, Value counts);
  void addUp(Values &sums, int from, int to);
  /// What is stored of each column, before anything is.
  void compute() {
    each([&](unsigned) {
      for (const Store &s : full) e.vector(s.node);
    });
  }
  void store(Value counts);

private:
  void each(llvm::function_ref<void(unsigned)> body);

  GpuEmitter &e;
  size_t at; // of the row's scope
  SmallVector<Scope> rows;
  std::vector<Store> full, perRow;
};

GpuEmitter::RowsOfPart::RowsOfPart(GpuEmitter &emitter, Value first) : e(emitter), at(e.scopes.size()) {
  for (unsigned row = 0; row < e.d.width; ++row) {
    e.scopes.push_back(Scope(e.scopes.back().block));
    e.bindOuter(e.plus(first, e.number(row)), e.p.reduced);
    rows.push_back(e.scopes.pop_back_val());
  }
  e.scopes.push_back(Scope(e.scopes.back().block));
  for (const Store &s : e.p.stores) (e.p.outputs[s.result].elements == e.p.points(e.p.outer) ? perRow : full).push_back(s);
}

void GpuEmitter::RowsOfPart::each(llvm::function_ref<void(unsigned)> body) {
  for (unsigned row = 0; row < e.d.width; ++row) {
    std::swap(e.scopes[at], rows[row]);
    e.goTo(at);
    body(row);
    std::swap(e.scopes[at], rows[row]);
  }
}

/// What is there already, and the rest: all loads are under way before anything waits for one.
void GpuEmitter::RowsOfPart::load(ArrayRef<int> loads, ArrayRef<Value> loaded) {
  std::vector<int> used = e.madeOfRow();
  each([&](unsigned row) {
    for (auto [i, n] : llvm::enumerate(loads)) e.scopes[at].values[n] = loaded[row * loads.size() + i];
    for (int n : used)
      if (e.p.nodes[n].kind == Node::Load && e.p.nodes[n].level == 0 && !e.p.nodes[n].guarded) e.value(n);
  });
}

/// Along each row, by all threads that count.
void GpuEmitter::RowsOfPart::reduce(ArrayRef<int> reductions, Value counts) {
  Values terms;
  each([&](unsigned) {
    for (int r : reductions) {
      const Node &n = e.p.nodes[r];
      Value term = e.vector(n.operands[0]);
      terms.push_back(counts ? e.select(counts, term, e.identity(n.fn, n.type, true)) : term);
    }
  });
  Values joined = e.joinBlock(reductions, std::move(terms));
  each([&](unsigned row) {
    for (auto [i, r] : llvm::enumerate(reductions)) e.scopes[at].values[r] = joined[row * reductions.size() + i];
  });
}

/// To the sums of columns what is of these levels.
void GpuEmitter::RowsOfPart::addUp(Values &sums, int from, int to) {
  each([&](unsigned) {
    for (auto [sum, s] : llvm::zip(sums, e.p.sums)) {
      const Node &n = e.p.nodes[s.node];
      if (int level = e.p.nodes[n.operands[0]].level; level < from || level >= to) continue;
      Value term = e.vector(n.operands[0]);
      e.goTo(at);
      sum = e.combine(n.fn, n.type, sum, term);
    }
  });
}

void GpuEmitter::RowsOfPart::store(Value counts) {
  each([&](unsigned) {
    if (counts)
      e.when(counts, [&] { e.storeAll(full); });
    else
      e.storeAll(full);
    if (perRow.empty()) return;
    llvm::SaveAndRestore<std::optional<unsigned>> inLanes(e.lane, std::nullopt);
    e.when(e.b.create<arith::CmpIOp>(e.loc, arith::CmpIPredicate::eq, e.thread, e.number(0)), [&] { e.storeAll(perRow); });
  });
}

Emitter::Values GpuEmitter::rowsOfPart(Value first, Value counts, Values sums, ArrayRef<int> loads, ArrayRef<Value> loaded) {
  std::map<int, std::vector<int>> byLevel;
  for (int r : p.reductions) byLevel[p.nodes[r].level].push_back(r);
  RowsOfPart rows(*this, first);
  rows.load(loads, loaded);
  int known = 0; // of what level values are
  for (auto &[level, reductions] : byLevel) {
    rows.addUp(sums, known, level); // as soon as they are known: what only these sums read need not stay
    known = level;
    rows.reduce(reductions, counts);
  }
  rows.compute();
  rows.addUp(sums, known, INT_MAX);
  rows.store(counts);
  return sums;
}

/// In a butterfly in each warp, and then warp by warp.
Emitter::Values GpuEmitter::joinBlock(ArrayRef<int> reductions, Values sums) {
  goTo(scopes.size() - 1);
  auto of = [&](size_t i) -> const Node & { return p.nodes[reductions[i % reductions.size()]]; };
  for (auto [i, sum] : llvm::enumerate(sums)) sum = joinWarp(of(i).fn, of(i).type, horizontal(of(i).fn, of(i).type, sum));
  int64_t warps = d.threads / 32;
  if (warps == 1) return sums;
  SmallVector<Value> arrays;
  for (Value sum : sums) arrays.push_back(sharedArray(sum.getType(), warps));
  barrier(); // the sums of the rows before have been read
  Value isFirst = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, remainder(thread, 32), number(0)), warp = quotient(thread, 32);
  when(isFirst, [&] {
    for (auto [array, sum] : llvm::zip(arrays, sums)) storeShared(array, warp, sum);
  });
  goTo(scopes.size() - 1);
  barrier();
  for (auto [i, sum] : llvm::enumerate(sums)) {
    sum = loadShared(arrays[i], number(0));
    for (int64_t other = 1; other < warps; ++other) sum = combine(of(i).fn, of(i).type, sum, loadShared(arrays[i], number(other)));
  }
  return sums;
}

} // namespace zero::codegen

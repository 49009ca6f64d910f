//===- kinds.cpp - each kind of kernel as what one thread of a GPU does -----------------------------------===//
#include "compiler/codegen/ptx/attention_kernels.h"
#include "compiler/codegen/ptx/emit_gpu.h"
#include "compiler/codegen/ptx/gpu_emitter.h"
#include "compiler/codegen/ptx/kept_row.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace zero::codegen {

//===----------------------------------------------------------------------===//
// Maps and rows
//===----------------------------------------------------------------------===//

void GpuEmitter::emitMap() {
  std::vector<unsigned> dims(p.outer);
  dims.insert(dims.end(), p.inner.begin(), p.inner.end());
  int64_t vectors = p.points(dims) / lanes;
  Value vector = plus(times(block, d.threads), thread);
  auto body = [&] {
    goTo(scopes.size() - 1);
    bindVector(vector, dims);
    lane = dims.back();
    storeAll(p.stores);
    lane.reset();
  };
  if (vectors % d.threads)
    when(below(vector, number(vectors)), body);
  else
    body();
}

void GpuEmitter::emitRows() {
  int64_t rows = p.points(p.outer), each = d.threads / d.team;
  if (each == 1) return row(block, thread);
  Value mine = plus(times(block, each), quotient(thread, d.team)), rank = remainder(thread, d.team);
  if (rows % each)
    when(below(mine, number(rows)), [&] { row(mine, rank); });
  else
    row(mine, rank);
}

/// A team's row: passed over once per level of reductions (or once for a softmax's two) and once more for the stores (rows.h).
void GpuEmitter::row(Value number, Value rank) {
  RowPasses rows = passesOf(p, /*keep=*/false);
  if (d.shared) {
    kept = keptLoad(p, lanes);
    keptRow = sharedArray(storedAs(p.inputs[p.nodes[kept].arg].type), p.points(p.inner), 16);
  }
  goTo(scopes.size() - 1);
  bindOuter(number, p.outer);
  Value isFirst = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, rank, this->number(0));
  auto once = [&](ArrayRef<Store> stores) {
    if (!stores.empty()) when(isFirst, [&] { storeAll(stores); });
  };
  for (auto pass = rows.byLevel.begin(); pass != rows.byLevel.end(); ++pass) {
    const std::vector<int> &reductions = pass->second.reductions;
    auto next = std::next(pass);
    if (next != rows.byLevel.end() && sumsOnline(reductions, next->second.reductions)) {
      sumOnline(reductions, next->second.reductions, rank);
      pass = next;
      isKept = true;
      continue;
    }
    Values sums = share(p.inner, rank, d.team, atOnce(operandsOf(reductions)), initial(reductions, 1),
                        [&](Values carried) { return accumulate(reductions, std::move(carried)); });
    isKept = true;
    joinTeam(reductions, std::move(sums), rank);
  }
  // What every thread reads of the row is read before any of them writes there.
  goTo(scopes.size() - 1);
  for (int n : rows.readOncePerRow) value(n);
  auto shares = inplacePairs(p);
  bool overwrites = llvm::any_of(p.below(rows.readOncePerRow), [&](int n) {
    return p.nodes[n].kind == Node::Load && llvm::any_of(shares, [&](auto &pair) { return pair.second == p.nodes[n].arg; });
  });
  goTo(scopes.size() - 1);
  if (overwrites) barrier();
  once(rows.early);
  if (rows.full.empty()) return;
  SmallVector<int> roots = operandsOf(rows.trailing);
  for (const Store &s : rows.full) roots.push_back(s.node);
  Values sums = share(p.inner, rank, d.team, atOnce(roots), initial(rows.trailing, 1), [&](Values carried) {
    carried = accumulate(rows.trailing, std::move(carried));
    storeAll(rows.full);
    return carried;
  });
  joinTeam(rows.trailing, std::move(sums), rank);
  once(rows.late);
}

Value GpuEmitter::compute(const Node &n) {
  if (isInside && isBound(n)) return math.whole(isVector(n) ? Type(vectorOf(b.getI1Type())) : b.getI1Type(), 1);
  return kept >= 0 && &n == &p.nodes[kept] && inShare ? keptOrLoaded(n) : Emitter::compute(n);
}

/// What a thread keeps it reads again itself, whichever pass it is: nobody waits.
Value GpuEmitter::keptOrLoaded(const Node &n) {
  Scalar type = p.inputs[n.arg].type;
  Value at = times(inShare, lanes);
  auto from = [&](Value memory, Value at) -> Value {
    if (!isVector(n)) return b.create<memref::LoadOp>(loc, memory, ValueRange{at});
    return b.create<vector::LoadOp>(loc, vectorOf(storedAs(type)), memory, ValueRange{at});
  };
  if (isKept) return fromMemory(from(keptRow, at), type);
  Value v = from(inputs[n.arg], scalarIndex(n.index));
  if (isVector(n))
    b.create<vector::StoreOp>(loc, v, keptRow, ValueRange{at});
  else
    b.create<memref::StoreOp>(loc, v, keptRow, ValueRange{at});
  return fromMemory(v, type);
}

/// A thread's sums, vectors or numbers, to those of the row.
void GpuEmitter::joinTeam(ArrayRef<int> reductions, Values sums, Value rank) {
  goTo(scopes.size() - 1);
  for (auto [i, r] : llvm::enumerate(reductions)) {
    const Node &n = p.nodes[r];
    if (isa<VectorType>(sums[i].getType())) sums[i] = horizontal(n.fn, n.type, sums[i]);
    sums[i] = joinWarp(n.fn, n.type, sums[i]);
  }
  if (unsigned warps = d.team / 32; warps > 1 && !reductions.empty()) {
    Value inWarp = remainder(rank, 32), zero = number(0);
    SmallVector<Value> arrays;
    for (Value sum : sums) arrays.push_back(sharedArray(sum.getType(), warps));
    Value isFirst = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, inWarp, zero);
    Value warp = quotient(rank, 32);
    when(isFirst, [&] {
      for (auto [array, sum] : llvm::zip(arrays, sums)) storeShared(array, warp, sum);
    });
    goTo(scopes.size() - 1);
    barrier();
    Value counts = below(inWarp, number(warps)), at = b.create<arith::SelectOp>(loc, counts, inWarp, zero);
    for (auto [i, r] : llvm::enumerate(reductions)) {
      const Node &n = p.nodes[r];
      Value part = b.create<arith::SelectOp>(loc, counts, loadShared(arrays[i], at), identity(n.fn, n.type, false));
      sums[i] = joinWarp(n.fn, n.type, part);
    }
  }
  for (auto [i, r] : llvm::enumerate(reductions)) scopes.back().values[r] = sums[i];
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

void GpuEmitter::emitColumns() {
  int64_t columns = p.points(p.inner) / lanes; // vectors of them
  Value column = plus(times(block, d.width), remainder(thread, d.width)), group = quotient(thread, d.width);
  Value counts = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, group, number(0));
  Value mine = column;
  if (columns % d.width) { // threads beyond the last column do as the last one's, and store nothing
    counts = b.create<arith::AndIOp>(loc, counts, below(column, number(columns)));
    mine = b.create<arith::MinUIOp>(loc, column, number(columns - 1));
  }
  bindVector(mine, p.inner);
  lane = p.inner.back();
  std::map<int, std::vector<int>> byLevel;
  for (int r : p.reductions) byLevel[p.nodes[r].level].push_back(r);
  for (auto &[level, reductions] : byLevel) sumColumns(reductions, group);
  when(counts, [&] { storeAll(p.stores); });
  lane.reset();
}

void GpuEmitter::sumColumns(ArrayRef<int> reductions, Value group) {
  int64_t rows = p.points(p.reduced), groups = d.threads / d.width;
  auto add = [&](Value row, Values sums) {
    bindOuter(row, p.reduced);
    return accumulate(reductions, std::move(sums));
  };
  // As on the CPU, few terms are added one after another before a new sum begins.
  int64_t many = kTermsInARow * groups;
  Values sums =
      rows <= many ? loop(scopes.size() - 1, group, number(rows), groups, std::nullopt, initial(reductions, 1), add)
                   : loop(scopes.size() - 1, group, number(rows), many, std::nullopt, initial(reductions, 1), [&](Value first, Values all) {
                       Value last = b.create<arith::MinUIOp>(loc, plus(first, number(many)), number(rows));
                       Values part = loop(scopes.size() - 1, first, last, groups, std::nullopt, initial(reductions, 1), add);
                       goTo(scopes.size() - 1);
                       for (auto [i, r] : llvm::enumerate(reductions)) all[i] = combine(p.nodes[r].fn, p.nodes[r].type, all[i], part[i]);
                       return all;
                     });
  goTo(scopes.size() - 1);
  if (groups > 1) joinGroups(reductions, sums, groups);
  for (auto [i, r] : llvm::enumerate(reductions)) scopes.back().values[r] = sums[i];
}

/// In a tree: each half of the groups adds what the other half has, until the first group has all, which it alone needs.
void GpuEmitter::joinGroups(ArrayRef<int> reductions, Values &sums, int64_t groups) {
  SmallVector<Value> arrays;
  for (Value sum : sums) arrays.push_back(sharedArray(getElementTypeOrSelf(sum.getType()), int64_t(d.threads) * lanes));
  // Lane by lane, so that the threads of a warp use neighbouring words.
  auto at = [&](Value of, unsigned lane) { return plus(of, number(int64_t(lane) * d.threads)); };
  auto keep = [&](Value array, Value sum) {
    for (unsigned lane = 0; lane < lanes; ++lane) storeShared(array, at(thread, lane), b.create<vector::ExtractOp>(loc, sum, lane));
  };
  auto kept = [&](Value array, Value of) -> Value {
    SmallVector<Value> parts;
    for (unsigned lane = 0; lane < lanes; ++lane) parts.push_back(loadShared(array, at(of, lane)));
    return b.create<vector::FromElementsOp>(loc, vectorOf(parts[0].getType()), parts);
  };
  for (auto [array, sum] : llvm::zip(arrays, sums)) keep(array, sum);
  Value group = quotient(thread, d.width);
  for (int64_t half = groups / 2; half > 0; half /= 2) {
    goTo(scopes.size() - 1);
    barrier();
    when(below(group, number(half)), [&] {
      Value other = plus(thread, number(half * d.width));
      for (auto [array, r] : llvm::zip(arrays, reductions))
        keep(array, combine(p.nodes[r].fn, p.nodes[r].type, kept(array, thread), kept(array, other)));
    });
  }
  goTo(scopes.size() - 1);
  barrier();
  for (auto [sum, array] : llvm::zip(sums, arrays)) sum = kept(array, remainder(thread, d.width));
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

void GpuEmitter::emitScan() {
  int64_t rows = p.points(p.outer);
  Value mine = plus(times(block, d.threads), thread);
  when(below(mine, number(rows)), [&] {
    bindOuter(mine, p.outer);
    scanAlong(p.inner, {identity(Fn::Add, p.nodes[p.stores[0].node].type, false)});
  });
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void GpuEmitter::emit() {
  thread = special("llvm.nvvm.read.ptx.sreg.tid.x");
  block = special("llvm.nvvm.read.ptx.sreg.ctaid.x");
  switch (d.form) {
  case Division::Map:
    return emitMap();
  case Division::Rows:
    return emitRows();
  case Division::Parts:
    return emitParts();
  case Division::Columns:
    return emitColumns();
  case Division::Scatter:
    return emitScatter();
  case Division::Scan:
    return emitScan();
  case Division::Tiles: // has an emitter of its own
    llvm_unreachable("no loops over expressions");
  }
}

void emitForGpu(const Program &p, const Division &division, ModuleOp module, Location loc) {
  OpBuilder b(module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  if (division.form == Division::Tiles) return emitAttention(p, division, b, loc);
  GpuEmitter e(p, b, loc, division);
  e.beginFunction({});
  e.emit();
}

} // namespace zero::codegen

//===- emit_loops.cpp - loops of a kernel ---------------------------------------------------------===//
#include "compiler/codegen/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Emitter::Values Emitter::loop(size_t depth, Value from, Value to, int64_t step, std::optional<unsigned> dim, Values carried,
                              const std::function<Values(Value, Values)> &body) {
  OpBuilder::InsertionGuard guard(b);
  Value stride = number(step);
  goTo(depth);
  auto op = b.create<scf::ForOp>(loc, from, to, stride, carried);
  if (!op.getBody()->empty()) op.getBody()->back().erase();
  CodeBefore outside(scopes, op);
  scopes.push_back(Scope(op.getBody()));
  if (dim) scopes.back().bound.push_back({*dim, op.getInductionVar()});
  b.setInsertionPointToEnd(op.getBody());
  Values yielded = body(op.getInductionVar(), Values(op.getRegionIterArgs()));
  b.setInsertionPointToEnd(op.getBody());
  b.create<scf::YieldOp>(loc, yielded);
  scopes.pop_back();
  return Values(op.getResults());
}

Emitter::Values Emitter::nest(size_t depth, ArrayRef<unsigned> dims, Values carried, const Body &body) {
  if (dims.empty()) return body(std::move(carried));
  return loop(depth, number(0), number(p.size(dims[0])), 1, dims[0], std::move(carried),
              [&](Value, Values inside) { return nest(scopes.size() - 1, dims.drop_front(), std::move(inside), body); });
}

Emitter::Values Emitter::reduceOver(size_t depth, ArrayRef<unsigned> dims, const Values &start, const Join &join, const Body &body) {
  if (dims.empty()) return body(start);
  std::function<Values(size_t, Value, Value, int64_t)> range = [&](size_t at, Value from, Value to, int64_t step) {
    bool terms = step == 1;
    return loop(at, from, to, step, terms ? std::optional(dims[0]) : std::nullopt, start, [&](Value first, Values sums) {
      size_t inside = scopes.size() - 1;
      if (terms && dims.size() == 1) return body(std::move(sums));
      Values part;
      if (terms) {
        part = reduceOver(inside, dims.drop_front(), start, join, body);
      } else {
        Value last = b.create<arith::MinUIOp>(loc, b.create<arith::AddIOp>(loc, first, number(step)), to);
        part = range(inside, first, last, step / kTermsInARow);
      }
      goTo(inside);
      return join(std::move(sums), std::move(part));
    });
  };
  int64_t size = p.size(dims[0]), step = 1;
  while (step * kTermsInARow < size) step *= kTermsInARow;
  return range(depth, number(0), number(size), step);
}

void Emitter::when(Value condition, const std::function<void()> &then, const std::function<void()> &otherwise) {
  OpBuilder::InsertionGuard guard(b);
  size_t depth = scopes.size() - 1;
  goTo(depth);
  auto op = b.create<scf::IfOp>(loc, condition, bool(otherwise));
  CodeBefore outside(scopes, op);
  auto branch = [&](Block *block, const std::function<void()> &body) {
    scopes.push_back(Scope(block, block->getTerminator()));
    b.setInsertionPoint(block->getTerminator());
    body();
    scopes.pop_back();
  };
  branch(op.thenBlock(), then);
  if (otherwise) branch(op.elseBlock(), otherwise);
}

Emitter::Values Emitter::atLane(unsigned dim, Value first, Value laneMask, Values carried, const Body &body) {
  OpBuilder::InsertionGuard guard(b);
  Scope scope(scopes.back().block, scopes.back().before);
  scope.bound.push_back({dim, first});
  scopes.push_back(std::move(scope));
  auto outerLane = lane;
  Value outerMask = mask;
  lane = dim, mask = laneMask;
  goTo(scopes.size() - 1);
  Values result = body(std::move(carried));
  lane = outerLane, mask = outerMask;
  scopes.pop_back();
  return result;
}

/// `from` is a multiple of the lane count; so is `to`, or it is the end of the dimension.
Emitter::Values Emitter::sweepLast(unsigned dim, Value from, Value to, Values carried, unsigned copies, const Body &body) {
  int64_t size = p.size(dim), tail = size % lanes, wide = int64_t(copies) * lanes;
  size_t groups = carried.size() / copies, depth = scopes.size() - 1;
  // Accumulators lie copy by copy: copy 0 of every entry, copy 1 of every entry, …
  auto step = [&](unsigned copy, Value first, Value laneMask, Values all) {
    Values mine(all.begin() + copy * groups, all.begin() + (copy + 1) * groups);
    mine = atLane(dim, first, laneMask, std::move(mine), body);
    std::copy(mine.begin(), mine.end(), all.begin() + copy * groups);
    return all;
  };
  auto several = [&](Value first, Values all) {
    Block *block = scopes.back().block;
    Values firsts{first};
    for (unsigned copy = 1; copy < copies; ++copy) firsts.push_back(b.create<arith::AddIOp>(loc, first, number(int64_t(copy) * lanes)));
    SmallVector<SmallVector<Operation *>> parts(copies);
    for (unsigned copy = 0; copy < copies; ++copy) {
      Operation *last = block->empty() ? nullptr : &block->back();
      all = step(copy, firsts[copy], {}, std::move(all));
      for (Operation &op : llvm::make_range(last ? std::next(last->getIterator()) : block->begin(), block->end()))
        parts[copy].push_back(&op);
    }
    interleave(parts);
    return all;
  };
  auto one = [&](Value first, Values all) { return step(0, first, {}, std::move(all)); };
  if (p.chunked()) {
    goTo(depth);
    // Whole vectors: up to `to`, or what of it is a multiple of the lane count. Chunks are multiples of every step.
    Value whole = tail ? b.create<arith::MinUIOp>(loc, to, number(size - tail)).getResult() : to;
    if (copies > 1) {
      Value fast = b.create<arith::SubIOp>(loc, whole, b.create<arith::RemUIOp>(loc, whole, number(wide)));
      loop(depth, from, fast, wide, std::nullopt, {}, several);
      goTo(depth);
      from = b.create<arith::MaxUIOp>(loc, from, fast);
    }
    loop(depth, from, whole, lanes, std::nullopt, {}, one);
    if (tail) {
      goTo(depth);
      Value last = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, to, number(size));
      when(last, [&] { step(0, number(size - tail), maskOf(tail), {}); });
    }
    return {};
  }
  int64_t done = copies > 1 ? size / wide * wide : 0;
  if (done) carried = loop(depth, number(0), number(done), wide, std::nullopt, std::move(carried), several);
  if (size - tail > done) carried = loop(depth, number(done), number(size - tail), lanes, std::nullopt, std::move(carried), one);
  if (tail) {
    goTo(depth);
    carried = step(copies - 1, number(size - tail), maskOf(tail), std::move(carried));
  }
  return carried;
}

/// Copies of one body, operation by operation in turn: they do not depend on each other, and a processor that looks
/// only so far ahead sees that.
void Emitter::interleave(ArrayRef<SmallVector<Operation *>> parts) {
  for (auto &part : parts)
    if (part.size() != parts[0].size()) return;
  for (size_t i = 0; i < parts[0].size(); ++i)
    for (auto &part : parts) part[i]->moveBefore(part[i]->getBlock(), part[i]->getBlock()->end());
}

Emitter::Values Emitter::sweep(ArrayRef<unsigned> dims, Values carried, unsigned copies, const Body &body) {
  if (dims.size() == 1) return sweepLast(dims[0], number(0), number(p.size(dims[0])), std::move(carried), copies, body);
  return loop(scopes.size() - 1, number(0), number(p.size(dims[0])), 1, dims[0], std::move(carried),
              [&](Value, Values inside) { return sweep(dims.drop_front(), std::move(inside), copies, body); });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Emitter::Values Emitter::initial(ArrayRef<int> reductions, unsigned copies) {
  Values start;
  for (unsigned copy = 0; copy < copies; ++copy)
    for (int r : reductions) start.push_back(identity(p.nodes[r].fn, p.nodes[r].type, true));
  return start;
}

Emitter::Values Emitter::accumulate(ArrayRef<int> reductions, Values carried) {
  Values terms;
  for (int r : reductions) terms.push_back(vector(p.nodes[r].operands[0]));
  for (auto [i, r] : llvm::enumerate(reductions)) {
    const Node &n = p.nodes[r];
    Value x = terms[i];
    if (mask) x = b.create<arith::SelectOp>(loc, mask, x, identity(n.fn, n.type, true));
    carried[i] = combine(n.fn, n.type, carried[i], x);
  }
  return carried;
}

void Emitter::finish(ArrayRef<int> reductions, unsigned copies, Values carried) {
  goTo(scopes.size() - 1);
  for (auto [i, r] : llvm::enumerate(reductions)) {
    const Node &n = p.nodes[r];
    Values parts;
    for (unsigned copy = 0; copy < copies; ++copy) parts.push_back(carried[copy * reductions.size() + i]);
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t k = 0; k < parts.size() / 2; ++k) parts[k] = combine(n.fn, n.type, parts[k], parts[k + parts.size() / 2]);
    scopes.back().values[r] = horizontal(n.fn, n.type, parts[0]);
  }
}

} // namespace zero::codegen

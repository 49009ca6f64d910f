//===- emit_kinds.cpp - each kind of kernel as loops ----------------------------------------------===//
#include "compiler/codegen/emit.h"
#include "compiler/codegen/emitter.h"
#include "compiler/codegen/rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {

void Emitter::bindOuter(Value iteration, ArrayRef<unsigned> dims) {
  Value rest = iteration;
  SmallVector<std::pair<unsigned, Value>> bound;
  for (size_t i = dims.size(); i-- > 0;) {
    Value v = rest;
    if (i > 0) {
      Value size = number(p.size(dims[i]));
      v = b.create<arith::RemUIOp>(loc, rest, size);
      rest = b.create<arith::DivUIOp>(loc, rest, size);
    }
    scopes.back().bound.push_back({dims[i], v});
  }
}

/// Everything is computed before anything is written, so that operands may be overwritten in place.
void Emitter::storeAll(ArrayRef<Store> stores) {
  for (const Store &s : stores) lane ? vector(s.node) : value(s.node);
  for (const Store &s : stores) store(s.result, s.index, s.node);
}

void Emitter::addToSums(Value isFirst, ArrayRef<Value> terms) {
  for (auto [s, term] : llvm::zip(p.sums, terms)) {
    Value sum = combine(Fn::Add, p.nodes[s.node].type, reload(s), term);
    store(s.result, s.index, b.create<arith::SelectOp>(loc, isFirst, term, sum).getResult());
  }
}

/// A row without sums, of which each iteration is a part.
void Emitter::emitChunks(Value begin, Value end) {
  int64_t size = p.points(p.inner);
  Value chunk = number(kChunk);
  goTo(0);
  Value from = b.create<arith::MulIOp>(loc, begin, chunk);
  Value to = b.create<arith::MinUIOp>(loc, b.create<arith::MulIOp>(loc, end, chunk), number(size));
  sweepLast(p.inner[0], from, to, {}, sumsAtOnce(p, 0, nodesOf(p.stores)), [&](Values) -> Values {
    storeAll(p.stores);
    return {};
  });
}

/// The last pass over a row, in which its columns are stored and added to the sums of its part.
void Emitter::lastPass(Value row, const RowPasses &rows) {
  Value isFirst; // of its part
  if (!p.sums.empty()) {
    goTo(scopes.size() - 1);
    Value inPart = b.create<arith::RemUIOp>(loc, row, number(p.points(p.reduced)));
    isFirst = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, inPart, number(0));
  }
  unsigned copies = sumsAtOnce(p, rows.trailing.size(), nodesOf(rows.full));
  Values sums = sweep(p.inner, initial(rows.trailing, copies), copies, [&](Values carried) {
    carried = accumulate(rows.trailing, std::move(carried));
    Values terms;
    for (const Store &s : p.sums) terms.push_back(vector(p.nodes[s.node].operands[0]));
    storeAll(rows.full);
    addToSums(isFirst, terms);
    return carried;
  });
  finish(rows.trailing, copies, std::move(sums));
  storeAll(rows.late);
}

void Emitter::emitRows(Value begin, Value end) {
  if (p.chunked()) return emitChunks(begin, end);
  RowPasses rows = passesOf(p, /*keep=*/p.sums.empty());
  if (!p.sums.empty()) { // from parts to rows
    goTo(0);
    Value each = number(p.points(p.reduced));
    begin = b.create<arith::MulIOp>(loc, begin, each), end = b.create<arith::MulIOp>(loc, end, each);
  }
  loop(0, begin, end, 1, std::nullopt, {}, [&](Value row, Values) -> Values {
    bindOuter(row, p.outer);
    auto readBelow = [&](int level) { // what the row reads once is read before the row writes
      goTo(scopes.size() - 1);
      for (int n : rows.readOncePerRow)
        if (p.nodes[n].level < level) value(n);
    };
    for (auto &[level, pass] : rows.byLevel) {
      if (!pass.kept.empty()) readBelow(level);
      unsigned copies = sumsAtOnce(p, pass.reductions.size(), termsOf(p, pass.reductions));
      Values sums = sweep(p.inner, initial(pass.reductions, copies), copies, [&](Values carried) {
        carried = accumulate(pass.reductions, std::move(carried));
        for (const Kept &k : pass.kept) store(k.place.result, k.place.index, k.node);
        return carried;
      });
      finish(pass.reductions, copies, std::move(sums));
      for (const Kept &k : pass.kept) inRow.try_emplace(k.node, k.place);
    }
    readBelow(INT_MAX);
    storeAll(rows.early);
    if (!rows.full.empty() || !p.sums.empty()) lastPass(row, rows);
    inRow.clear();
    return {};
  });
}

void Emitter::columnsOf(unsigned dim, Value first, int64_t width) {
  unsigned count = llvm::divideCeil(width, lanes);
  size_t at = scopes.size(); // where the scope of the vector in work stands
  // One scope per vector of columns, kept while the rows pass by.
  SmallVector<Scope> columns;
  for (unsigned u = 0; u < count; ++u) {
    goTo(at - 1);
    Scope s(scopes.back().block, scopes.back().before);
    s.bound.push_back({dim, b.create<arith::AddIOp>(loc, first, number(u * lanes))});
    columns.push_back(std::move(s));
  }
  goTo(at - 1);
  Value last = width % lanes ? maskOf(width % lanes) : Value();
  auto inColumns = [&](unsigned u, const std::function<void()> &body) {
    OpBuilder::InsertionGuard guard(b);
    columns[u].before = scopes[at].before;
    std::swap(scopes[at], columns[u]);
    lane = dim, mask = u + 1 == count ? last : Value();
    goTo(scopes.size() - 1);
    body();
    lane.reset(), mask = {};
    std::swap(scopes[at], columns[u]);
    for (size_t i = at + 1; i < scopes.size(); ++i) { // what the loops know of these columns
      scopes[i].values.clear();
      scopes[i].splat.clear();
    }
  };
  std::map<int, std::vector<int>> byLevel;
  for (int r : p.reductions) byLevel[p.nodes[r].level].push_back(r);
  scopes.push_back(Scope(scopes.back().block, scopes.back().before));
  for (auto &[level, reductions] : byLevel) {
    auto join = [&](Values x, Values y) {
      for (size_t i = 0; i < x.size(); ++i) {
        const Node &n = p.nodes[reductions[i % reductions.size()]];
        x[i] = combine(n.fn, n.type, x[i], y[i]);
      }
      return x;
    };
    Values sums = reduceOver(at, p.reduced, initial(reductions, count), join, [&](Values carried) -> Values {
      for (unsigned u = 0; u < count; ++u)
        inColumns(u, [&] {
          for (auto [i, r] : llvm::enumerate(reductions)) {
            Value &sum = carried[u * reductions.size() + i];
            sum = combine(p.nodes[r].fn, p.nodes[r].type, sum, vector(p.nodes[r].operands[0]));
          }
        });
      return carried;
    });
    for (unsigned u = 0; u < count; ++u)
      for (auto [i, r] : llvm::enumerate(reductions)) columns[u].values[r] = sums[u * reductions.size() + i];
  }
  for (unsigned u = 0; u < count; ++u) inColumns(u, [&] { storeAll(p.stores); });
  scopes.pop_back();
}

void Emitter::emitColumns(Value begin, Value end) {
  unsigned last = p.inner.back();
  int64_t size = p.size(last), chunks = llvm::divideCeil(size, kColumns), part = size % kColumns;
  ArrayRef<unsigned> others = ArrayRef<unsigned>(p.inner).drop_back();
  loop(0, begin, end, 1, std::nullopt, {}, [&](Value iteration, Values) -> Values {
    Value chunk = iteration;
    if (!others.empty()) {
      chunk = b.create<arith::RemUIOp>(loc, iteration, number(chunks));
      bindOuter(b.create<arith::DivUIOp>(loc, iteration, number(chunks)), others);
    }
    Value first = b.create<arith::MulIOp>(loc, chunk, number(kColumns));
    if (part == 0) {
      columnsOf(last, first, kColumns);
    } else if (chunks == 1) {
      columnsOf(last, number(0), part);
    } else {
      Value isLast = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, chunk, number(chunks - 1));
      when(
          isLast, [&] { columnsOf(last, number((chunks - 1) * kColumns), part); }, [&] { columnsOf(last, first, kColumns); });
    }
    return {};
  });
}

Emitter::Values Emitter::scanAlong(ArrayRef<unsigned> dims, Values sum) {
  const Store &out = p.stores[0];
  if (dims.empty()) {
    Value next = combine(Fn::Add, p.nodes[out.node].type, sum[0], value(out.node));
    storeScalar(0, scalarIndex(out.index), p.exclusive ? sum[0] : next);
    return {next};
  }
  return loop(scopes.size() - 1, number(0), number(p.size(dims[0])), 1, std::nullopt, std::move(sum), [&](Value step, Values inside) {
    Value at = p.reverse ? b.create<arith::SubIOp>(loc, number(p.size(dims[0]) - 1), step).getResult() : step;
    scopes.back().bound.push_back({dims[0], at});
    return scanAlong(dims.drop_front(), std::move(inside));
  });
}

void Emitter::emitScan(Value begin, Value end) {
  loop(0, begin, end, 1, std::nullopt, {}, [&](Value row, Values) -> Values {
    bindOuter(row, p.outer);
    scanAlong(p.inner, {identity(Fn::Add, p.nodes[p.stores[0].node].type, false)});
    return {};
  });
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

SmallVector<Value> Emitter::beginFunction(ArrayRef<Type> more) {
  SmallVector<Type> types;
  for (const auto *side : {&p.inputs, &p.outputs})
    for (const Argument &a : *side) types.push_back(MemRefType::get({a.elements}, storedAs(a.type)));
  llvm::append_range(types, more);
  auto function = b.create<func::FuncOp>(loc, p.name, b.getFunctionType(types, {}));
  Block *block = function.addEntryBlock();
  b.setInsertionPointToEnd(block);
  auto ret = b.create<func::ReturnOp>(loc);
  scopes.push_back(Scope(block, ret));
  b.setInsertionPoint(ret);
  for (auto [i, a] : llvm::enumerate(block->getArguments().drop_back(more.size()))) (i < p.inputs.size() ? inputs : outputs).push_back(a);
  return SmallVector<Value>(block->getArguments().take_back(more.size()));
}

void emitProgram(const Program &p, ModuleOp module, unsigned lanes, Location loc) {
  OpBuilder b(module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  Emitter e(p, b, loc, lanes);
  auto range = e.beginFunction({b.getIndexType(), b.getIndexType()});
  switch (p.kind) {
  case Program::Rows:
    return e.emitRows(range[0], range[1]);
  case Program::Columns:
    return e.emitColumns(range[0], range[1]);
  case Program::Scatter:
    return e.emitScatter(range[0], range[1]);
  case Program::Scan:
    return e.emitScan(range[0], range[1]);
  case Program::Tiles: // see forProcessor
    llvm_unreachable("no kernel of a processor");
  }
}

} // namespace zero::codegen

//===- attention_emitter.cpp - what kernels of attention and of its gradient share ------------------------===//
#include "compiler/codegen/ptx/attention_emitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace zero::codegen {

void AttentionEmitter::owns(const Attention::Rows &rows, Value tile, bool heaviestLast) {
  // The same tile of some heads, then the next one of these; then other heads.
  int64_t heads = headsAtOnce(a.batch * rows.heads, 2 * std::max(a.queries, a.keys) * a.dim * int64_t(bytesOf(type)));
  int64_t blocks = heads * tiles.owned(rows.length);
  Value inBlocks = remainder(tile, blocks), index = quotient(inBlocks, heads);
  ownHead = plus(times(quotient(tile, blocks), heads), remainder(inBlocks, heads));
  if (heaviestLast) index = minus(number(tiles.owned(rows.length) - 1), index); // they begin first
  first = times(index, tiles.own);
  count = leftOf(first, rows.length);
}

Value AttentionEmitter::start(const Attention::Rows &rows, Value head, Value row) {
  Value ofHead = rows.sample == rows.heads * rows.head
                     ? times(head, rows.head)
                     : plus(times(quotient(head, rows.heads), rows.sample), times(remainder(head, rows.heads), rows.head));
  Value at = plus(ofHead, times(row, rows.row));
  return rows.first ? plus(at, number(rows.first)) : at;
}

void AttentionEmitter::bringOwned(int i, const Tensor &t) {
  if (tiles.buffers == 1)
    load(owned[i], t.memory, type, ownStart(t.rows), t.rows.row, count);
  else
    beginLoad(owned[i], t.memory, ownStart(t.rows), t.rows.row, t.rows.length % tiles.own ? count : Value());
}

void AttentionEmitter::bring(const Tile &to, const Tensor &t, Value head, Value row) {
  Value from = start(t.rows, head, row);
  if (tiles.buffers == 1)
    load(to, t.memory, type, from, t.rows.row, leftOf(row, t.rows.length));
  else
    beginLoad(to, t.memory, from, t.rows.row, passedLeftOf(row, t.rows.length));
}

void AttentionEmitter::bringNumbers(const Tile &to, const Tensor &t, Value head, Value row) {
  Value from = start(t.rows, head, row);
  if (tiles.buffers == 1)
    loadNumbers(to, t.memory, from, t.rows.row, leftOf(row, t.rows.length));
  else
    beginLoadOfNumbers(to, t.memory, from, t.rows.row, passedLeftOf(row, t.rows.length));
}

Fragment AttentionEmitter::scores(const Fragment &products, Value head, Value query, Value key, bool transposed) {
  return map(products, [&](Value product, const Entry &entry) {
    if (factor != 1) return product;
    Value score = mul(product, real(a.scale));
    if (!a.mask) return score;
    auto [i, j] = positions(entry, query, key, transposed);
    return add(score, b.create<memref::LoadOp>(loc, operand(Mask), ValueRange{maskAt(head, i, j)}));
  });
}

std::pair<Value, Value> AttentionEmitter::positions(const Entry &entry, Value query, Value key, bool transposed) {
  Value own = row(entry.row), other = column(entry);
  return {plus(query, transposed ? other : own), plus(key, transposed ? own : other)};
}

Value AttentionEmitter::maskAt(Value head, Value query, Value key) {
  Value at[] = {quotient(head, a.heads), remainder(head, a.heads), smaller(query, number(a.queries - 1)), smaller(key, number(a.keys - 1))};
  Value sum = number(0);
  int64_t stride = 1;
  for (int i = 3; i >= 0; --i) {
    if ((*a.mask)[i] > 1) sum = plus(sum, times(at[i], stride));
    stride *= (*a.mask)[i];
  }
  return sum;
}

Fragment AttentionEmitter::seen(const Fragment &f, Value query, Value key, bool transposed, Value nothing) {
  bool ends = !transposed && a.keys % tiles.other;
  // Where a row's edge of the band lies: of a row of queries the column of a key, of a row of keys that of a query.
  auto diagonal = [&](int64_t distance) { return minus(plus(query, number(distance)), key); };
  auto columns = [&](Value diagonal) {
    PerRow bound;
    for (unsigned i = 0; i < rows(); ++i) bound.push_back(transposed ? minus(row(i), diagonal) : plus(row(i), diagonal));
    return bound;
  };
  Fragment counted = f;
  if (a.last || ends) {
    Value some; // whether there may be an element beyond
    PerRow bound;
    if (a.last) {
      Value last = diagonal(*a.last);
      some = negative(minus(last, number((transposed ? tiles.own : tiles.other) - 1)));
      bound = columns(last);
    }
    if (ends) {
      Value last = minus(number(a.keys - 1), key), beyond = negative(minus(last, number(tiles.other - 1)));
      some = some ? b.create<arith::OrIOp>(loc, some, beyond).getResult() : beyond;
      bound.resize(rows());
      for (Value &column : bound) column = column ? smaller(column, last) : last;
    }
    counted = within(counted, bound, some, transposed ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle, nothing);
  }
  if (a.first) {
    Value first = diagonal(*a.first), some = negative(minus(number(1 - (transposed ? tiles.other : tiles.own)), first));
    counted = within(counted, columns(first), some, transposed ? arith::CmpIPredicate::sle : arith::CmpIPredicate::sge, nothing);
  }
  return counted;
}

Fragment AttentionEmitter::within(const Fragment &f, PerRow bound, Value some, arith::CmpIPredicate predicate, Value nothing) {
  for (Value &column : bound) column = b.create<arith::IndexCastOp>(loc, b.getI32Type(), minus(column, this->column({0, 0})));
  return changedIf(some, f, [&](Value v, const Entry &entry) {
    Value column = math.whole(b.getI32Type(), entry.column);
    return select(b.create<arith::CmpIOp>(loc, predicate, column, bound[entry.row]), v, nothing);
  });
}

Value AttentionEmitter::someHidden(ArrayRef<Value> lses) {
  if (!a.mask) return {};
  Value lowest;
  for (Value lse : llvm::SetVector<Value>(lses.begin(), lses.end())) lowest = lowest ? combine(Fn::Min, Scalar::F32, lowest, lse) : lse;
  for (unsigned bits : {1, 2, 4, 8, 16}) lowest = combine(Fn::Min, Scalar::F32, lowest, shuffle(lowest, bits));
  return isHidden(lowest);
}

Fragment AttentionEmitter::weights(const Fragment &scores, const Fragment &lses, Value someHidden) {
  Fragment s = scores;
  if (someHidden)
    s = changedIf(someHidden, s, lses, [&](Value score, Value lse) {
      Value weight = b.create<arith::NegFOp>(loc, math.log(mul(lse, real(-1 / plan::kHiddenKey))));
      return select(isHidden(lse), select(is(arith::CmpFPredicate::OGT, score, real(-INFINITY)), weight, real(-INFINITY)), score);
    });
  // Without a mask a row sees nothing, or no such score.
  Fragment shifts = map(lses, [&](Value lse, const Entry &) { return select(isHidden(lse), real(someHidden ? 0 : INFINITY), lse); });
  return map(s, shifts, [&](Value score, Value shift) { return exponential(score, shift, factor); });
}

Value AttentionEmitter::wholeTiles(Value position) { return times(quotient(larger(position, number(0)), tiles.other), tiles.other); }

Value AttentionEmitter::firstKey() { return a.first ? wholeTiles(plus(first, number(*a.first))) : number(0); }

Value AttentionEmitter::keysSeen() {
  if (!a.last) return number(a.keys);
  Value end = plus(smaller(plus(first, number(tiles.own)), number(a.queries)), number(*a.last));
  if (*a.last > a.keys - a.queries) end = smaller(end, number(a.keys));
  return larger(end, number(0));
}

Value AttentionEmitter::firstQuery() { return a.last ? wholeTiles(plus(first, number(-*a.last))) : number(0); }

Value AttentionEmitter::queriesSeeing() {
  if (!a.first) return number(a.queries);
  return larger(smaller(plus(first, number(tiles.own - *a.first)), number(a.queries)), number(0));
}

PerRow AttentionEmitter::numbersOf(const Tensor &t, double otherwise) {
  PerRow result;
  for (unsigned i = 0; i < rows(); ++i) {
    Value counts = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, row(i), count);
    Value at = plus(ownStart(t.rows), times(select(counts, row(i), number(0)), t.rows.row));
    result.push_back(select(counts, b.create<memref::LoadOp>(loc, t.memory, ValueRange{at}), real(otherwise)));
  }
  return result;
}

Emitter::Values AttentionEmitter::overTiles(Value from, Value to, Values carried,
                                            const std::function<void(Value position, Value buffer)> &bring,
                                            const std::function<Values(Value position, Value buffer, Values)> &body,
                                            const std::function<void()> &begin) {
  barrier(); // what was there before is read
  if (tiles.buffers == 1) {
    if (begin) begin();
    return loop(scopes.size() - 1, from, to, tiles.other, std::nullopt, std::move(carried), [&](Value position, Values now) {
      bring(position, number(0));
      barrier();
      now = body(position, number(0), std::move(now));
      barrier();
      return now;
    });
  }
  when(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, from, to), [&] { bring(from, number(0)); });
  if (begin) {
    waitForLoads();
    barrier();
    begin();
  }
  return loop(scopes.size() - 1, from, to, tiles.other, std::nullopt, std::move(carried), [&](Value position, Values now) {
    waitForLoads();
    barrier(); // this tile is there, and the one before is read
    Value buffer = remainder(quotient(minus(position, from), tiles.other), 2), next = plus(position, number(tiles.other));
    when(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, next, to), [&] { bring(next, minus(number(1), buffer)); });
    return body(position, buffer, std::move(now));
  });
}

Emitter::Values AttentionEmitter::overKeys(Values carried,
                                           const std::function<Values(Value key, const Tile &k, const Tile &v, Values)> &body) {
  // The block's own rows stay in registers, where these are shared out for two strips: there is room for them beside one sum.
  auto keep = [&] {
    for (Tile &tile : owned)
      if (tile.memory) tile = kept(tile);
  };
  auto bringBoth = [&](Value key, Value buffer) {
    bring(at(passed[0], buffer), k(), keyHead(ownHead), key);
    bring(at(passed[1], buffer), v(), keyHead(ownHead), key);
  };
  auto onBoth = [&](Value key, Value buffer, Values now) {
    return body(key, at(passed[0], buffer), at(passed[1], buffer), std::move(now));
  };
  return overTiles(firstKey(), keysSeen(), std::move(carried), bringBoth, onBoth, tiles.strips > 1 ? keep : std::function<void()>());
}

} // namespace zero::codegen

//===- attention_kernels.cpp - attention as what one thread of a GPU does ---------------------------------===//
// FlashAttention-2 (Dao, 2023), algorithms 1 and 2. S = scale q·kᵀ + mask and P = exp(S - lse) exist a tile at a time. A block owns a tile
// of rows of its results, goes over the tiles of the other side in order, and nobody else adds to them: no atomics, and one order of each
// sum. So dQ is made by blocks of its own.
#include "compiler/codegen/ptx/attention_kernels.h"
#include "compiler/codegen/ptx/attention_tiles.h"
#include "compiler/codegen/ptx/tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <cmath>

using namespace mlir;

namespace zero::codegen {
namespace {

class AttentionEmitter : public TileEmitter {
public:
  AttentionEmitter(const Program &p, OpBuilder &b, Location loc, const Division &division)
      : TileEmitter(p, b, loc, division, p.attention.bf16, attentionTiles(p.attention).strips), a(p.attention), tiles(attentionTiles(a)),
        type(p.outputs[0].type), factor(a.bf16 && !a.mask && a.scale > 0 ? a.scale : 1) {}

  void emit() {
    begin(tiles.own, tiles.other);
    bool gradient = a.result == Attention::Gradient;
    // Whichever side a block owns, its tiles lie in the same memory.
    for (int i = 0; i < (gradient ? 2 : 1); ++i) owned[i] = tile(tiles.own, a.dim);
    for (Tile &buffers : passed) buffers = TileEmitter::tiles(tiles.buffers, tiles.other, a.dim);
    if (!gradient) return owns(a.queryRows(), block, a.causal), output();
    Value ofKeys = number(int64_t(tiles.keyBlocks));
    when(
        below(block, ofKeys), [&] { owns(a.keyRows(), block, false), keyGradients(); },
        [&] { owns(a.queryRows(), minus(block, ofKeys), a.causal), queryGradients(); });
  }

private:
  /// Of all heads.
  struct Tensor {
    Value memory;
    Attention::Rows rows;
  };

  const Attention &a;
  AttentionTiles tiles;
  Scalar type;                 // of q, k, v and their like in memory
  double factor;               // of scores: the exponential multiplies by it where nothing is added to them in between
  Tile owned[2], passed[2];    // of rows that the block owns, and buffers for those that it goes over
  Value ownHead, first, count; // of the block's tile: whose it is, its first row there, and how many rows are left from there on

  /// The block owns a tile of one of all heads.
  void owns(const Attention::Rows &rows, Value tile, bool heaviestLast) {
    Value index = quotient(tile, a.batch * rows.heads);
    ownHead = remainder(tile, a.batch * rows.heads);
    if (heaviestLast) index = minus(number(tiles.owned(rows.length) - 1), index); // they begin first
    first = times(index, tiles.own);
    count = leftOf(first, rows.length);
  }

  enum Operand { Q, K, V, Mask, Lse, Delta, DOut };
  Value operand(Operand which) const { return inputs[a.operands[which > Mask && !a.mask ? which - 1 : which]]; }
  Tensor q() const { return {operand(Q), a.queryRows()}; }
  Tensor k() const { return {operand(K), a.keyRows()}; }
  Tensor v() const { return {operand(V), a.valueRows()}; }
  Tensor dout() const { return {operand(DOut), a.resultRows()}; }
  /// Of q, k or v; one where these are one tensor.
  Value gradient(Operand of) const { return outputs[a.packed ? 0 : of]; }
  /// One number of each row of the queries.
  Tensor sums(Value memory) const { return {memory, a.sumRows()}; }

  /// The first element of a row.
  Value start(const Attention::Rows &rows, Value head, Value row) {
    Value ofHead = rows.sample == rows.heads * rows.head
                       ? times(head, rows.head)
                       : plus(times(quotient(head, rows.heads), rows.sample), times(remainder(head, rows.heads), rows.head));
    Value at = plus(ofHead, times(row, rows.row));
    return rows.first ? plus(at, number(rows.first)) : at;
  }
  Value ownStart(const Attention::Rows &rows) { return start(rows, ownHead, first); }
  /// Rows from `row` on; a tile may have more.
  Value leftOf(Value row, int64_t length) { return minus(number(length), row); }
  /// The same of a tile that is passed; null where every tile is full.
  Value passedLeftOf(Value row, int64_t length) { return length % tiles.other ? leftOf(row, length) : Value(); }
  Value keyHead(Value head) { return quotient(head, a.group()); } // heads of a batch's lie side by side, and so do the key heads

  /// It comes together with the first rows that are passed, where there is a second buffer for these.
  void bringOwned(int i, const Tensor &t) {
    if (tiles.buffers == 1)
      load(owned[i], t.memory, type, ownStart(t.rows), t.rows.row, count);
    else
      beginLoad(owned[i], t.memory, ownStart(t.rows), t.rows.row, t.rows.length % tiles.own ? count : Value());
  }
  void storeOwned(const Fragment &f, const Tensor &t) { store(f, t.memory, type, ownStart(t.rows), t.rows.row, count); }
  /// Rows that are passed have come then, or have begun to come where there is a second buffer for them.
  void bring(const Tile &to, const Tensor &t, Value head, Value row) {
    Value from = start(t.rows, head, row);
    if (tiles.buffers == 1)
      load(to, t.memory, type, from, t.rows.row, leftOf(row, t.rows.length));
    else
      beginLoad(to, t.memory, from, t.rows.row, passedLeftOf(row, t.rows.length));
  }
  void bringNumbers(const Tile &to, const Tensor &t, Value head, Value row) {
    Value from = start(t.rows, head, row);
    if (tiles.buffers == 1)
      loadNumbers(to, t.memory, from, t.rows.row, leftOf(row, t.rows.length));
    else
      beginLoadOfNumbers(to, t.memory, from, t.rows.row, passedLeftOf(row, t.rows.length));
  }

  //--- scores ----------------------------------------------------------------------------------------------------------

  /// (scale q·kᵀ + mask) / factor of a fragment whose columns are keys, or queries where `transposed`; from `query` and `key` on.
  Fragment scores(const Fragment &products, Value head, Value query, Value key, bool transposed) {
    return map(products, [&](Value product, const Entry &entry) {
      if (factor != 1) return product;
      Value score = mul(product, real(a.scale));
      if (!a.mask) return score;
      auto [i, j] = positions(entry, query, key, transposed);
      return add(score, b.create<memref::LoadOp>(loc, operand(Mask), ValueRange{maskAt(head, i, j)}));
    });
  }

  std::pair<Value, Value> positions(const Entry &entry, Value query, Value key, bool transposed) {
    Value own = row(entry.row), other = column(entry);
    return {plus(query, transposed ? other : own), plus(key, transposed ? own : other)};
  }

  Value maskAt(Value head, Value query, Value key) {
    Value at[] = {quotient(head, a.heads), remainder(head, a.heads), smaller(query, number(a.queries - 1)),
                  smaller(key, number(a.keys - 1))};
    Value sum = number(0);
    int64_t stride = 1;
    for (int i = 3; i >= 0; --i) {
      if ((*a.mask)[i] > 1) sum = plus(sum, times(at[i], stride));
      stride *= (*a.mask)[i];
    }
    return sum;
  }

  /// The fragment with `nothing` where a query does not see a key, or where there is no such key. Most tiles are seen whole, and skip it.
  Fragment seen(const Fragment &f, Value query, Value key, bool transposed, Value nothing) {
    bool ends = !transposed && a.keys % tiles.other;
    if (!a.causal && !ends) return f;
    // Of a row of queries the last column that counts, of a row of keys the first.
    Value diagonal = minus(plus(query, number(a.keys - a.queries)), key), last = minus(number(a.keys - 1), key), some;
    PerRow bound;
    for (unsigned i = 0; i < rows(); ++i) bound.push_back(transposed ? minus(row(i), diagonal) : a.causal ? plus(row(i), diagonal) : last);
    if (a.causal) some = negative(transposed ? minus(diagonal, number(tiles.own - 1)) : minus(diagonal, number(tiles.other - 1)));
    if (ends) {
      Value beyond = negative(minus(last, number(tiles.other - 1)));
      some = some ? b.create<arith::OrIOp>(loc, some, beyond).getResult() : beyond;
      for (Value &column : bound) column = smaller(column, last);
    }
    for (Value &column : bound) column = b.create<arith::IndexCastOp>(loc, b.getI32Type(), minus(column, this->column({0, 0})));
    auto predicate = transposed ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle;
    return changedIf(some, f, [&](Value v, const Entry &entry) {
      Value column = math.whole(b.getI32Type(), entry.column);
      return select(b.create<arith::CmpIOp>(loc, predicate, column, bound[entry.row]), v, nothing);
    });
  }
  using TileEmitter::scaled;
  Value scaled(Value score) { return factor == 1 ? score : mul(score, real(factor)); }
  Value minus(Value x, Value y) { return b.create<arith::SubIOp>(loc, x, y); }
  Value negative(Value x) { return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, number(0)); }

  /// Keys that some query of the block's tile sees: the first so many.
  Value keysSeen() {
    if (!a.causal) return number(a.keys);
    Value end = plus(smaller(plus(first, number(tiles.own)), number(a.queries)), number(a.keys - a.queries));
    return larger(end, number(0));
  }

  /// The first query that sees a key of the block's tile, at the beginning of a tile.
  Value firstQuery() {
    if (!a.causal) return number(0);
    Value query = larger(plus(first, number(a.queries - a.keys)), number(0));
    return times(quotient(query, tiles.other), tiles.other);
  }

  /// A row that sees nothing has lse -inf; with +inf its weights are 0.
  Value usable(Value lse) { return select(is(arith::CmpFPredicate::OEQ, lse, real(-INFINITY)), real(INFINITY), lse); }
  /// Of the thread's rows of the block's tile; `otherwise` where there is none.
  PerRow numbersOf(const Tensor &t, double otherwise) {
    PerRow result;
    for (unsigned i = 0; i < rows(); ++i) {
      Value counts = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, row(i), count);
      Value at = plus(ownStart(t.rows), times(select(counts, row(i), number(0)), t.rows.row));
      result.push_back(select(counts, b.create<memref::LoadOp>(loc, t.memory, ValueRange{at}), real(otherwise)));
    }
    return result;
  }

  /// `body` for each tile of the other side in [from, to), which `bring` brings into the buffer of this number. Of two buffers one is
  /// filled while the other is read. `begin`, if there is one, comes before them, when owned tiles have come.
  Values overTiles(Value from, Value to, Values carried, const std::function<void(Value position, Value buffer)> &bring,
                   const std::function<Values(Value position, Value buffer, Values)> &body, const std::function<void()> &begin = {}) {
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

  /// `body` for each tile of the keys that the block's queries see, by its first key.
  Values overKeys(Values carried, const std::function<Values(Value key, const Tile &k, const Tile &v, Values)> &body) {
    // Their operands stay in registers, if these have room for more than one strip.
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
    return overTiles(number(0), keysSeen(), std::move(carried), bringBoth, onBoth, tiles.strips > 1 ? keep : std::function<void()>());
  }

  //--- the kernels -------------------------------------------------------------------------------------------------------

  /// O = softmax(S) V by rows, and their lse. While a row's maximum grows, what was summed shrinks with it.
  void output() {
    bringOwned(0, q());
    Values carried = zeros(a.dim);
    size_t sums = carried.size(); // the sum of O; then of each row the maximum so far, and this thread's part of the sum of P
    carried.append(perRow(real(-INFINITY)));
    carried.append(perRow(real(0)));
    carried = overKeys(carried, [&](Value key, const Tile &k, const Tile &v, Values now) {
      Fragment s = scores(timesTransposed(owned[0], k), ownHead, first, key, false);
      s = seen(s, first, key, false, real(-INFINITY));
      PerRow highest = acrossRow(Fn::Max, along(Fn::Max, s)), shift, shrink;
      for (unsigned i = 0; i < rows(); ++i) {
        Value &before = now[sums + i];
        highest[i] = combine(Fn::Max, Scalar::F32, before, highest[i]);
        shift.push_back(select(is(arith::CmpFPredicate::OEQ, highest[i], real(-INFINITY)), real(0), scaled(highest[i]))); // nothing seen
        shrink.push_back(exponential(before, shift[i], factor));
        before = highest[i];
      }
      Fragment weights = map(s, [&](Value score, const Entry &entry) { return exponential(score, shift[entry.row], factor); });
      PerRow part = along(Fn::Add, weights);
      for (unsigned i = 0; i < rows(); ++i) {
        Value &total = now[sums + rows() + i];
        total = add(mul(total, shrink[i]), part[i]);
      }
      Fragment o = scaled(Fragment(ArrayRef(now).take_front(sums)), shrink);
      llvm::copy(plusTimes(o, weights, v), now.begin());
      return now;
    });
    PerRow total = acrossRow(Fn::Add, PerRow(ArrayRef(carried).take_back(rows()))), inverse;
    for (Value sum : total)
      inverse.push_back(select(is(arith::CmpFPredicate::OGT, sum, real(0)), b.create<arith::DivFOp>(loc, real(1), sum), real(0)));
    storeOwned(scaled(Fragment(ArrayRef(carried).take_front(sums)), inverse), {outputs[0], a.resultRows()});
    Tensor lse = this->sums(outputs[1]);
    for (unsigned i = 0; i < rows(); ++i) {
      Value isFirst = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, remainder(inWarp, 4), number(0));
      Value exists = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, row(i), count);
      when(b.create<arith::AndIOp>(loc, isFirst, exists), [&] {
        Value at = plus(ownStart(lse.rows), times(row(i), lse.rows.row));
        b.create<memref::StoreOp>(loc, add(scaled(carried[sums + i]), math.log(total[i])), lse.memory, ValueRange{at});
      });
    }
  }

  /// dV = Σ Pᵀ dO and dK = Σ dSᵀ Q over the queries of all heads that share the keys, with dS = scale P ∘ (dO·Vᵀ - delta).
  void keyGradients() {
    Tile lses = rowsOfNumbers(tiles.buffers, tiles.other), deltas = rowsOfNumbers(tiles.buffers, tiles.other);
    bringOwned(0, k());
    bringOwned(1, v());
    Values carried = zeros(2 * a.dim); // dK, dV
    size_t half = carried.size() / 2;
    carried = loop(scopes.size() - 1, number(0), number(a.group()), 1, std::nullopt, carried, [&](Value inGroup, Values outer) {
      Value head = plus(times(ownHead, a.group()), inGroup);
      auto bringAll = [&](Value query, Value buffer) {
        bring(at(passed[0], buffer), q(), head, query);
        bring(at(passed[1], buffer), dout(), head, query);
        bringNumbers(at(lses, buffer), sums(operand(Lse)), head, query);
        bringNumbers(at(deltas, buffer), sums(operand(Delta)), head, query);
      };
      // After the last query there are zeros: its weights are 1, and multiply zeros.
      return overTiles(firstQuery(), number(a.queries), std::move(outer), bringAll, [&](Value query, Value buffer, Values now) {
        Tile q = at(passed[0], buffer), dout = at(passed[1], buffer);
        Fragment lse = perColumn(at(lses, buffer)), delta = perColumn(at(deltas, buffer));
        lse = map(lse, [&](Value v, const Entry &) { return usable(v); });
        Fragment s = scores(timesTransposed(owned[0], q), head, query, first, true);
        Fragment weights = map(s, lse, [&](Value score, Value sum) { return exponential(score, sum, factor); });
        weights = seen(weights, query, first, true, real(0));
        Fragment ds = map(timesTransposed(owned[1], dout), delta, [&](Value x, Value y) { return sub(x, y); });
        ds = map(ds, weights, [&](Value x, Value weight) { return mul(x, weight); });
        llvm::copy(plusTimes(Fragment(ArrayRef(now).take_back(half)), weights, dout), now.begin() + half);
        llvm::copy(plusTimes(Fragment(ArrayRef(now).take_front(half)), ds, q), now.begin());
        return now;
      });
    });
    PerRow scale = perRow(real(a.scale));
    storeOwned(scaled(Fragment(ArrayRef(carried).take_front(half)), scale), {gradient(K), a.keyRows()});
    storeOwned(Fragment(ArrayRef(carried).take_back(half)), {gradient(V), a.valueRows()});
  }

  /// dQ = Σ dS K over the keys.
  void queryGradients() {
    bringOwned(0, q());
    bringOwned(1, dout());
    PerRow lse = numbersOf(sums(operand(Lse)), INFINITY), delta = numbersOf(sums(operand(Delta)), 0);
    for (Value &v : lse) v = usable(v);
    Values dq = overKeys(zeros(a.dim), [&](Value key, const Tile &k, const Tile &v, Values now) {
      Fragment s = scores(timesTransposed(owned[0], k), ownHead, first, key, false);
      Fragment weights = map(s, [&](Value score, const Entry &entry) { return exponential(score, lse[entry.row], factor); });
      weights = seen(weights, first, key, false, real(0));
      Fragment ds = map(timesTransposed(owned[1], v), [&](Value x, const Entry &entry) { return sub(x, delta[entry.row]); });
      ds = map(ds, weights, [&](Value x, Value weight) { return mul(x, weight); });
      return plusTimes(now, ds, k);
    });
    storeOwned(scaled(dq, perRow(real(a.scale))), {gradient(Q), a.queryRows()});
  }
};

} // namespace

void emitAttention(const Program &program, const Division &division, OpBuilder &b, Location loc) {
  AttentionEmitter(program, b, loc, division).emit();
}

} // namespace zero::codegen

//===- attention_kernels.cpp - attention as what one thread of a GPU does ---------------------------------===//
// FlashAttention-2 (Dao, 2023), algorithms 1 and 2. S = scale q·kᵀ + mask and P = exp(S - lse) exist a tile at a time. A block owns a tile
// of rows of its results, goes over the tiles of the other side in order, and nobody else adds to them: no atomics, and one order of each
// sum. So dQ is made by blocks of its own.
#include "compiler/codegen/ptx/attention_kernels.h"
#include "compiler/codegen/ptx/attention_emitter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace zero::codegen {
namespace {

class AttentionKernels : public AttentionEmitter {
public:
  using AttentionEmitter::AttentionEmitter;

  void emit() {
    begin(tiles.own, tiles.other);
    bool gradient = a.result == Attention::Gradient;
    // Whichever side a block owns, its tiles lie in the same memory.
    for (int i = 0; i < (gradient ? 2 : 1); ++i) owned[i] = tile(tiles.own, a.dim);
    for (Tile &buffers : passed) buffers = TileEmitter::tiles(tiles.buffers, tiles.other, a.dim);
    if (!gradient) return owns(a.queryRows(), block, a.last.has_value()), output();
    Value ofKeys = number(int64_t(tiles.keyBlocks));
    when(
        below(block, ofKeys), [&] { owns(a.keyRows(), block, false), keyGradients(); },
        [&] { owns(a.queryRows(), minus(block, ofKeys), a.last.has_value()), queryGradients(); });
  }

private:
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
        Value highest = carried[sums + i], sum = add(scaled(highest), math.log(total[i]));
        if (a.mask) { // which may be all that a row sees
          Value hidden = b.create<arith::AndIOp>(loc, isHidden(highest), is(arith::CmpFPredicate::OGT, highest, real(-INFINITY)));
          sum = select(hidden, mul(total[i], real(plan::lseOfHidden(1))), sum);
        }
        b.create<memref::StoreOp>(loc, sum, lse.memory, ValueRange{at});
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
      // After the last query there are zeros: its weights multiply zeros.
      return overTiles(firstQuery(), queriesSeeing(), std::move(outer), bringAll, [&](Value query, Value buffer, Values now) {
        Tile q = at(passed[0], buffer), dout = at(passed[1], buffer);
        Fragment s = scores(timesTransposed(owned[0], q), head, query, first, true);
        Fragment lse = perColumn(at(lses, buffer));
        Fragment weights = seen(this->weights(s, lse, someHidden(lse)), query, first, true, real(0));
        if (a.mask && a.queries % tiles.other) { // which no lse takes back there: what it adds may be too much for an exponential
          Value last = minus(number(a.queries - 1), query);
          weights =
              within(weights, PerRow(rows(), last), negative(minus(last, number(tiles.other - 1))), arith::CmpIPredicate::sle, real(0));
        }
        Fragment dp = timesTransposed(owned[1], dout);
        Fragment ds = map(dp, perColumn(at(deltas, buffer)), [&](Value x, Value y) { return sub(x, y); });
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
    Value hidden = someHidden(lse);
    Values dq = overKeys(zeros(a.dim), [&](Value key, const Tile &k, const Tile &v, Values now) {
      Fragment s = scores(timesTransposed(owned[0], k), ownHead, first, key, false);
      Fragment weights = this->weights(s, map(s, [&](Value, const Entry &entry) { return lse[entry.row]; }), hidden);
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
  AttentionKernels(program, b, loc, division).emit();
}

} // namespace zero::codegen

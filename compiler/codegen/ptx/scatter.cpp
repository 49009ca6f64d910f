//===- scatter.cpp - sums of updates that fall into rows, as what one thread of a GPU does -----------------===//
// A block owns some rows of the result. It looks at all updates, in rounds of some for each of its threads, lists those that are its own in
// their order, and adds them one after another, all threads together. Words that people write are few and frequent: of several updates at
// once all are loaded before the first is added, and a row stays in registers as long as it is the same.
#include "compiler/codegen/ptx/gpu_emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace zero::codegen {

// Updates that a thread looks at in a round, so that as many loads are under way; and that are added at once.
static constexpr int64_t kWarp = 32, kEach = 4, kAtOnce = 6;
static constexpr int64_t kCopied = 4; // vectors of the rows that a thread copies at once

void GpuEmitter::emitScatter() {
  int64_t rows = p.points(p.reduced);
  Value from = times(block, d.width), to = b.create<arith::MinUIOp>(loc, plus(from, number(d.width)), number(rows));
  unlessInPlace([&] { copyRows(from, to); });
  barrier(); // others add to what a thread has written
  int64_t updates = p.points(p.outer), each = std::min<int64_t>(kEach, llvm::divideCeil(updates, d.threads));
  Type i32 = b.getI32Type();
  // In a round: a word for each warp, for the first update of each of its threads, then for the second; and the updates and rows found.
  Value found = sharedArray(i32, each * d.threads / kWarp);
  OwnUpdates own{sharedArray(i32, each * d.threads), sharedArray(i32, each * d.threads), {}};
  loop(0, number(0), number(updates), each * d.threads, std::nullopt, {}, [&](Value first, Values) -> Values {
    SmallVector<Value> mine, row, falls;
    Value some;
    for (int64_t i = 0; i < each; ++i) {
      goTo(scopes.size() - 1);
      mine.push_back(plus(plus(first, number(i * d.threads)), thread));
      Value counts = below(mine.back(), number(updates));
      scopes.push_back(Scope(scopes.back().block, scopes.back().before));
      bindOuter(b.create<arith::MinUIOp>(loc, mine.back(), number(updates - 1)), p.outer);
      row.push_back(scatterRow());
      falls.push_back(b.create<arith::AndIOp>(loc, counts, liesIn(row.back(), from, to)));
      some = some ? b.create<arith::OrIOp>(loc, some, falls.back()).getResult() : falls.back();
      scopes.pop_back();
    }
    when(anyThread(some), [&] { // and nobody reads what was found in the round before any more
      own.count = list(own, found, mine, row, falls);
      loop(scopes.size() - 1, number(0), own.count, kAtOnce, std::nullopt, {}, [&](Value at, Values) -> Values {
        addUpdates(own, at);
        return {};
      });
    });
    return {};
  });
}

/// What the block's rows are before anything is added to them.
void GpuEmitter::copyRows(Value from, Value to) {
  int64_t vectors = p.points(p.inner) / lanes, round = kCopied * d.threads; // of a row; that all threads copy at once
  Value all = times(b.create<arith::SubIOp>(loc, to, from), vectors);
  auto each = [&](Value at, Values) -> Values {
    bindOuter(plus(from, quotient(at, vectors)), p.reduced);
    bindVector(remainder(at, vectors), p.inner);
    llvm::SaveAndRestore<std::optional<unsigned>> inLanes(lane, p.inner.back());
    storeAll(p.stores);
    return {};
  };
  Value whole = times(quotient(all, round), round);
  loop(scopes.size() - 1, thread, whole, round, std::nullopt, {}, several(kCopied, d.threads, each));
  goTo(scopes.size() - 1);
  loop(scopes.size() - 1, plus(whole, thread), all, d.threads, std::nullopt, {}, several(1, d.threads, each));
}

Value GpuEmitter::list(const OwnUpdates &own, Value found, ArrayRef<Value> updates, ArrayRef<Value> rows, ArrayRef<Value> falls) {
  Type i32 = b.getI32Type();
  int64_t warps = d.threads / kWarp, words = warps * int64_t(falls.size());
  Value warp = quotient(thread, kWarp), inWarp = remainder(thread, kWarp);
  SmallVector<Value> word, bits;
  for (auto [i, falling] : llvm::enumerate(falls)) {
    word.push_back(plus(warp, number(int64_t(i) * warps)));
    bits.push_back(ballot(falling, inWarp));
    storeShared(found, word.back(), bits.back());
  }
  barrier();
  // All there are, and of each of the thread's how many there are before its word.
  Values none(falls.size() + 1, math.whole(i32, 0));
  Values before = loop(scopes.size() - 1, number(0), number(words), 1, std::nullopt, none, [&](Value at, Values sums) {
    Value count = b.create<math::CtPopOp>(loc, loadShared(found, at));
    sums[0] = b.create<arith::AddIOp>(loc, sums[0], count);
    for (auto [sum, mine] : llvm::zip(MutableArrayRef(sums).drop_front(), word))
      sum = b.create<arith::AddIOp>(loc, sum, select(below(at, mine), count, math.whole(i32, 0)));
    return sums;
  });
  Value one = math.whole(i32, 1), lower = b.create<arith::ShLIOp>(loc, one, b.create<arith::IndexCastOp>(loc, i32, inWarp));
  lower = b.create<arith::SubIOp>(loc, lower, one);
  for (size_t i = 0; i < falls.size(); ++i)
    when(falls[i], [&] {
      Value inWord = b.create<math::CtPopOp>(loc, b.create<arith::AndIOp>(loc, bits[i], lower));
      Value at = b.create<arith::IndexCastOp>(loc, b.getIndexType(), b.create<arith::AddIOp>(loc, before[i + 1], inWord));
      storeShared(own.updates, at, b.create<arith::IndexCastOp>(loc, i32, updates[i]));
      storeShared(own.rows, at, b.create<arith::IndexCastOp>(loc, i32, rows[i]));
    });
  goTo(scopes.size() - 1);
  barrier();
  return b.create<arith::IndexCastOp>(loc, b.getIndexType(), before[0]);
}

void GpuEmitter::addUpdates(const OwnUpdates &own, Value first) {
  // After the last of the list, that one once more, which is not added.
  SmallVector<Value> update, row, counts;
  for (int64_t i = 0; i < kAtOnce; ++i) {
    Value at = plus(first, number(i)), there = b.create<arith::MinUIOp>(loc, at, b.create<arith::SubIOp>(loc, own.count, number(1)));
    counts.push_back(below(at, own.count));
    update.push_back(b.create<arith::IndexCastOp>(loc, b.getIndexType(), loadShared(own.updates, there)));
    row.push_back(b.create<arith::IndexCastOp>(loc, b.getIndexType(), loadShared(own.rows, there)));
  }
  int64_t width = p.outputs[0].elements / p.points(p.reduced);
  share(p.inner, thread, d.threads, 1, {}, [&](Values) -> Values {
    SmallVector<Value> value;
    for (Value each : update) {
      scopes.push_back(Scope(scopes.back().block, scopes.back().before));
      bindOuter(each, p.outer);
      value.push_back(vector(p.scatterValue));
      scopes.pop_back();
    }
    goTo(scopes.size() - 1);
    Value column = updatedColumn();
    auto place = [&](size_t i) { return plus(times(row[i], width), column); };
    Value sum = loadUpdated(place(0));
    for (size_t i = 0; i < value.size(); ++i) {
      sum = select(counts[i], plusUpdate(sum, value[i]), sum);
      if (i + 1 == value.size()) break;
      Value other = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, row[i], row[i + 1]);
      auto change = b.create<scf::IfOp>(loc, TypeRange{sum.getType()}, other, true);
      OpBuilder::InsertionGuard after(b);
      b.setInsertionPointToEnd(&change.getThenRegion().front());
      storeUpdated(sum, place(i));
      b.create<scf::YieldOp>(loc, loadUpdated(place(i + 1)));
      b.setInsertionPointToEnd(&change.getElseRegion().front());
      b.create<scf::YieldOp>(loc, sum);
      sum = change.getResult(0);
    }
    storeUpdated(sum, place(value.size() - 1));
    return {};
  });
}

/// A bit for each thread of the warp, in every thread.
Value GpuEmitter::ballot(Value condition, Value inWarp) {
  Type i32 = b.getI32Type();
  Value mine = b.create<arith::ShLIOp>(loc, b.create<arith::ExtUIOp>(loc, i32, condition), b.create<arith::IndexCastOp>(loc, i32, inWarp));
  for (unsigned bits = kWarp / 2; bits > 0; bits /= 2) mine = b.create<arith::OrIOp>(loc, mine, shuffle(mine, bits));
  return mine;
}

} // namespace zero::codegen

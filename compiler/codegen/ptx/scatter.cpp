//===- scatter.cpp - sums of updates that fall into rows, as what one thread of a GPU does -----------------===//
// A block owns some rows of the result. It looks at all updates, in rounds of some for each of its threads, and adds those that are its
// own, one after another in their order, all threads together. Which ones these are stands in a bit for each.
#include "compiler/codegen/ptx/gpu_emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace zero::codegen {

static constexpr int64_t kWarp = 32, kEach = 4; // updates that a thread looks at in a round, so that as many loads are under way

void GpuEmitter::emitScatter() {
  int64_t rows = p.points(p.reduced);
  Value from = times(block, d.width), to = b.create<arith::MinUIOp>(loc, plus(from, number(d.width)), number(rows));
  int64_t vectors = p.points(p.inner) / lanes; // of a row
  unlessInPlace([&] {
    Value all = times(b.create<arith::SubIOp>(loc, to, from), vectors);
    loop(scopes.size() - 1, thread, all, d.threads, std::nullopt, {}, [&](Value at, Values) -> Values {
      bindOuter(plus(from, quotient(at, vectors)), p.reduced);
      bindVector(remainder(at, vectors), p.inner);
      llvm::SaveAndRestore<std::optional<unsigned>> inLanes(lane, p.inner.back());
      storeAll(p.stores);
      return {};
    });
  });
  barrier(); // others add to what a thread has written
  int64_t updates = p.points(p.outer), each = std::min<int64_t>(kEach, llvm::divideCeil(updates, d.threads));
  int64_t warps = d.threads / kWarp, words = each * warps;
  // In a round: a word for each warp, for the first update of each of its threads, then for the second.
  Value found = sharedArray(b.getI32Type(), words);
  auto ownUpdate = [&](Value update) {
    bindOuter(update, p.outer);
    Value start = times(scatterRow(), p.outputs[0].elements / rows);
    share(p.inner, thread, d.threads, 1, {}, [&](Values) -> Values {
      addUpdate(start);
      return {};
    });
  };
  loop(0, number(0), number(updates), each * d.threads, std::nullopt, {}, [&](Value first, Values) -> Values {
    SmallVector<Value> falls;
    Value some;
    for (int64_t i = 0; i < each; ++i) {
      goTo(scopes.size() - 1);
      Value mine = plus(plus(first, number(i * d.threads)), thread), counts = below(mine, number(updates));
      scopes.push_back(Scope(scopes.back().block, scopes.back().before));
      bindOuter(b.create<arith::MinUIOp>(loc, mine, number(updates - 1)), p.outer);
      falls.push_back(b.create<arith::AndIOp>(loc, counts, liesIn(scatterRow(), from, to)));
      some = some ? b.create<arith::OrIOp>(loc, some, falls.back()).getResult() : falls.back();
      scopes.pop_back();
    }
    when(anyThread(some), [&] { // and nobody reads words of the round before any more
      Value warp = quotient(thread, kWarp), inWarp = remainder(thread, kWarp);
      for (auto [i, falling] : llvm::enumerate(falls)) storeShared(found, plus(warp, number(int64_t(i) * warps)), ballot(falling, inWarp));
      barrier();
      loop(scopes.size() - 1, number(0), number(words), 1, std::nullopt, {}, [&](Value at, Values) -> Values {
        Value word = loadShared(found, at);
        Value count = b.create<arith::IndexCastUIOp>(loc, b.getIndexType(), b.create<math::CtPopOp>(loc, word));
        Value base = plus(first, times(at, kWarp));
        loop(scopes.size() - 1, number(0), count, 1, std::nullopt, {word}, [&](Value, Values left) -> Values {
          Value bit = b.create<arith::IndexCastUIOp>(loc, b.getIndexType(), b.create<math::CountTrailingZerosOp>(loc, left[0]));
          Value rest = b.create<arith::AndIOp>(loc, left[0], b.create<arith::SubIOp>(loc, left[0], math.whole(b.getI32Type(), 1)));
          ownUpdate(plus(base, bit));
          return {rest};
        });
        return {};
      });
    });
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

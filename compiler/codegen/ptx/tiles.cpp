//===- tiles.cpp - matrices that the threads of a block hold together --------------------------------------===//
#include "compiler/codegen/ptx/tiles.h"
#include "compiler/codegen/ptx/warpgroup.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace zero::codegen {

static constexpr int64_t kWarp = 32, kVectorBytes = 16, kColumns8 = 8;
static constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3; // address spaces

void TileEmitter::begin(int64_t own, int64_t other) {
  beginFunction({});
  f32 = b.getF32Type();
  thread = special("llvm.nvvm.read.ptx.sreg.tid.x");
  block = special("llvm.nvvm.read.ptx.sreg.ctaid.x");
  inWarp = remainder(thread, kWarp), warp = quotient(thread, kWarp);
  pair = times(remainder(inWarp, 4), 2);
  if (!bf16) left = tile(own, other);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value TileEmitter::fma(Value x, Value y, Value z) { return b.create<math::FmaOp>(loc, x, y, z); }
Value TileEmitter::smaller(Value x, Value y) { return b.create<arith::MinSIOp>(loc, x, y); }
Value TileEmitter::larger(Value x, Value y) { return b.create<arith::MaxSIOp>(loc, x, y); }
/// Of numbers in bf16 the exponential of the GPU's unit is exact enough; of f32 it is that of all kernels.
Value TileEmitter::exponential(Value x, Value shift, double factor) {
  if (!bf16) return math.exp(sub(x, shift));
  // A mask may have added the lowest number there is, of which no multiple is finite.
  Value power = factor == 1 ? mul(sub(x, shift), real(Math::kLog2e))
                            : fma(x, real(factor * Math::kLog2e), b.create<arith::NegFOp>(loc, mul(shift, real(Math::kLog2e))));
  return intrinsic("llvm.nvvm.ex2.approx.ftz.f", f32, {power});
}
Value TileEmitter::element(Value vector, int64_t i) { return b.create<vector::ExtractOp>(loc, vector, i); }
Value TileEmitter::joined(Value first, Value second) {
  return b.create<vector::FromElementsOp>(loc, VectorType::get({2}, first.getType()), ValueRange{first, second});
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Tile TileEmitter::tile(int64_t rows, int64_t columns) {
  if (warpgroup) return {sharedArray(storedAs(Scalar::BF16), rows * columns, kPanelAlignment), rows, columns, columns, {}, {}};
  TileRow row = tileRow(columns, bf16);
  Tile made{sharedArray(bf16 ? storedAs(Scalar::BF16) : f32, rows * row.stride, kVectorBytes), rows, columns, row.stride, {}};
  if (row.columns > columns) { // zeros up to a whole step of a product, once
    auto type = VectorType::get({row.columns - columns}, storedAs(Scalar::BF16));
    loop(scopes.size() - 1, thread, number(rows), d.threads, std::nullopt, {}, [&](Value at, Values) -> Values {
      Value end = plus(times(at, row.stride), number(columns));
      b.create<vector::StoreOp>(loc, math.constants(b.getZeroAttr(type)), made.memory, ValueRange{end});
      return {};
    });
  }
  return made;
}

Tile TileEmitter::rowsOfNumbers(int64_t count, int64_t columns) {
  return {sharedArray(f32, count * columns, kVectorBytes), 1, columns, columns, {}};
}

Tile TileEmitter::at(const Tile &tiles, Value number) {
  Tile one = tiles;
  one.first = times(number, tiles.rows * tiles.stride);
  return one;
}

Value TileEmitter::inTile(const Tile &tile, Value row, Value column) {
  Value at;
  if (warpgroup) {
    constexpr int64_t width = kVectorBytes / 2, rows8 = kPanelColumns / width;
    Value vector = quotient(remainder(column, kPanelColumns), width), place = b.create<arith::XOrIOp>(loc, vector, remainder(row, rows8));
    Value inPanel = plus(times(row, kPanelColumns), plus(times(place, width), remainder(column, width)));
    at = plus(times(quotient(column, kPanelColumns), tile.rows * kPanelColumns), inPanel);
  } else {
    at = plus(times(row, tile.stride), column);
  }
  return tile.first ? plus(tile.first, at) : at;
}

Value TileEmitter::floatsAt(const Tile &tile, Value row, Value column, int64_t n) {
  return b.create<vector::LoadOp>(loc, vectorOfFloats(n), tile.memory, ValueRange{inTile(tile, row, column)});
}

Value TileEmitter::sharedAddress(Value memory, Value element, unsigned bytes) {
  Value address = plus(b.create<memref::ExtractAlignedPointerAsIndexOp>(loc, memory), times(element, bytes));
  return b.create<LLVM::IntToPtrOp>(loc, LLVM::LLVMPointerType::get(b.getContext(), kSharedMemory),
                                    b.create<arith::IndexCastOp>(loc, b.getI64Type(), address));
}

Value TileEmitter::globalAddress(Value memory, Value element, unsigned bytes) {
  Value address = plus(b.create<memref::ExtractAlignedPointerAsIndexOp>(loc, memory), times(element, bytes));
  Value generic = b.create<LLVM::IntToPtrOp>(loc, LLVM::LLVMPointerType::get(b.getContext()),
                                             b.create<arith::IndexCastOp>(loc, b.getI64Type(), address));
  return b.create<LLVM::AddrSpaceCastOp>(loc, LLVM::LLVMPointerType::get(b.getContext(), kGlobalMemory), generic);
}

Value TileEmitter::further(Value address, int64_t bytes) {
  return b.create<LLVM::GEPOp>(loc, address.getType(), b.getI8Type(), address, ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

/// Where `counts` does not hold nothing is read, and zeros are written.
void TileEmitter::beginCopy(unsigned bytes, Value to, Value from, Value counts) {
  Value all = math.whole(b.getI32Type(), bytes), size = counts ? select(counts, all, math.whole(b.getI32Type(), 0)) : all;
  intrinsic(bytes == 16 ? "llvm.nvvm.cp.async.cg.shared.global.16.s" : "llvm.nvvm.cp.async.ca.shared.global.4.s", {}, {to, from, size});
}

void TileEmitter::beginLoad(const Tile &tile, Value memory, Value first, int64_t between, Value count) {
  constexpr unsigned element = 2; // bytes of bf16
  int64_t width = kVectorBytes / element, perRow = tile.columns / width, vectors = tile.rows * perRow;
  // Each round is as many rows further, where all threads together have whole rows.
  bool wholeRows = d.threads % perRow == 0;
  Value at = thread, to, from;
  auto setOut = [&] {
    Value row = quotient(at, perRow), column = times(remainder(at, perRow), width);
    to = sharedAddress(tile.memory, inTile(tile, row, column), element);
    from = globalAddress(memory, plus(first, plus(times(row, between), column)), element);
  };
  if (wholeRows) setOut();
  for (int64_t i = 0; i < vectors; i += d.threads) {
    auto begin = [&] {
      int64_t rows = wholeRows ? i / perRow : 0;
      at = plus(thread, number(i));
      if (!wholeRows) setOut();
      Value counts = count ? b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, quotient(at, perRow), count).getResult() : Value();
      beginCopy(kVectorBytes, further(to, rows * betweenRows(tile) * element), further(from, rows * between * element), counts);
    };
    if (i + d.threads <= vectors)
      begin();
    else
      when(below(plus(thread, number(i)), number(vectors)), begin);
  }
}

/// A warpgroup's product sees what the thread's copies left in shared memory after the fence.
void TileEmitter::waitForLoads() {
  intrinsic("llvm.nvvm.cp.async.wait.all", {}, {});
  if (warpgroup) together(kFenceShared, {}, 0);
}

void TileEmitter::beginLoadOfNumbers(const Tile &row, Value memory, Value first, int64_t between, Value count) {
  constexpr unsigned element = 4; // bytes of f32
  for (int64_t i = 0; i < row.columns; i += d.threads) {
    auto begin = [&] {
      Value at = plus(thread, number(i));
      Value counts = count ? b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, at, count).getResult() : Value();
      beginCopy(element, sharedAddress(row.memory, inTile(row, number(0), at), element),
                globalAddress(memory, plus(first, times(at, between)), element), counts);
    };
    if (i + d.threads <= row.columns)
      begin();
    else
      when(below(plus(thread, number(i)), number(row.columns)), begin);
  }
}

void TileEmitter::load(const Tile &tile, Value memory, Scalar type, Value first, int64_t between, Value count) {
  int64_t width = kVectorBytes / bytesOf(type), perRow = tile.columns / width, vectors = tile.rows * perRow;
  auto stored = VectorType::get({width}, storedAs(type));
  Value none = math.constants(b.getZeroAttr(bf16 ? stored : vectorOfFloats(width)));
  SmallVector<std::array<Value, 2>> loaded; // where it goes, and what; all loads are under way before the first is waited for
  for (int64_t i = 0; i < vectors; i += d.threads) {
    Value at = plus(thread, number(i)), tileRow = quotient(at, perRow);
    Value counts = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, tileRow, count);
    Value column = times(remainder(at, perRow), width),
          from = plus(first, plus(times(select(counts, tileRow, number(0)), between), column));
    Value v = b.create<vector::LoadOp>(loc, stored, memory, ValueRange{from});
    if (!bf16) v = fromMemory(v, type);
    loaded.push_back({inTile(tile, tileRow, column), select(counts, v, none)});
  }
  for (auto [i, vector] : llvm::enumerate(loaded)) {
    auto store = [&, to = vector[0], v = vector[1]] { b.create<vector::StoreOp>(loc, v, tile.memory, ValueRange{to}); };
    if (int64_t(i + 1) * d.threads <= vectors)
      store();
    else
      when(below(plus(thread, number(int64_t(i) * d.threads)), number(vectors)), store);
  }
}

void TileEmitter::loadNumbers(const Tile &row, Value memory, Value first, int64_t between, Value count) {
  for (int64_t i = 0; i < row.columns; i += d.threads) {
    Value at = plus(thread, number(i)), counts = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, at, count);
    Value from = plus(first, times(select(counts, at, number(0)), between));
    Value v = select(counts, b.create<memref::LoadOp>(loc, memory, ValueRange{from}), real(0));
    auto store = [&] { b.create<memref::StoreOp>(loc, v, row.memory, ValueRange{inTile(row, number(0), at)}); };
    if (i + d.threads <= row.columns)
      store();
    else
      when(below(at, number(row.columns)), store);
  }
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

Entry TileEmitter::entryOf(const Fragment &f, size_t i) const {
  size_t strip = f.size() / strips, inStrip = i % strip;
  return {unsigned(i / strip * 2 + inStrip / 2 % 2), int64_t(inStrip / 4) * kColumns8 + int64_t(inStrip % 2)};
}

Value TileEmitter::row(unsigned which) {
  int64_t strip = AttentionTiles::kStripRows;
  return plus(plus(times(warp, strips * strip), quotient(inWarp, 4)), number(which / 2 * strip + which % 2 * kColumns8));
}

Value TileEmitter::column(const Entry &entry) { return plus(pair, number(entry.column)); }

Fragment TileEmitter::zeros(int64_t columns) { return Fragment(strips * stripSize(columns), real(0)); }

Fragment TileEmitter::map(const Fragment &f, Change change) {
  Fragment result;
  for (auto [i, v] : llvm::enumerate(f)) result.push_back(change(v, entryOf(f, i)));
  return result;
}

Fragment TileEmitter::map(const Fragment &f, const Fragment &g, llvm::function_ref<Value(Value, Value)> change) {
  Fragment result;
  for (auto [v, w] : llvm::zip_equal(f, g)) result.push_back(change(v, w));
  return result;
}

Fragment TileEmitter::changedIf(Value condition, const Fragment &f, Change change) {
  return oneOf(condition, f, [&] { return map(f, change); });
}

Fragment TileEmitter::changedIf(Value condition, const Fragment &f, const Fragment &g, llvm::function_ref<Value(Value, Value)> change) {
  return oneOf(condition, f, [&] { return map(f, g, change); });
}

Fragment TileEmitter::oneOf(Value condition, const Fragment &f, llvm::function_ref<Fragment()> change) {
  OpBuilder::InsertionGuard guard(b);
  auto branches = b.create<scf::IfOp>(loc, SmallVector<Type>(f.size(), f32), condition, true);
  b.setInsertionPointToEnd(branches.thenBlock());
  b.create<scf::YieldOp>(loc, change());
  b.setInsertionPointToEnd(branches.elseBlock());
  b.create<scf::YieldOp>(loc, f);
  return Fragment(branches.getResults());
}

Fragment TileEmitter::scaled(const Fragment &f, const PerRow &factors) {
  return map(f, [&](Value v, const Entry &entry) { return mul(v, factors[entry.row]); });
}

Fragment TileEmitter::perColumn(const Tile &row) {
  Fragment strip, result;
  for (int64_t column = 0; column < row.columns; column += kColumns8) {
    Value two = floatsAt(row, number(0), plus(pair, number(column)), 2);
    for (int64_t i : {0, 1, 0, 1}) strip.push_back(element(two, i));
  }
  for (unsigned i = 0; i < strips; ++i) result.append(strip);
  return result;
}

PerRow TileEmitter::along(Fn fn, const Fragment &f) {
  PerRow result = perRow({});
  for (auto [i, v] : llvm::enumerate(f)) {
    Value &sum = result[entryOf(f, i).row];
    sum = sum ? combine(fn, Scalar::F32, sum, v) : v;
  }
  return result;
}

PerRow TileEmitter::acrossRow(Fn fn, PerRow parts) {
  for (Value &part : parts) // the four threads of a row
    for (unsigned bits : {1, 2}) part = combine(fn, Scalar::F32, part, shuffle(part, bits));
  return parts;
}

void TileEmitter::store(const Fragment &f, Value memory, Scalar type, Value first, int64_t between, Value count) {
  int64_t columns = int64_t(f.size() / strips) * 2;
  for (unsigned row = 0; row < rows(); ++row)
    when(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, this->row(row), count), [&] {
      Value start = plus(plus(first, times(this->row(row), between)), pair);
      for (int64_t column = 0; column < columns; column += kColumns8) {
        size_t i = placeOf(row, column, columns);
        Value two = toMemory(joined(f[i], f[i + 1]), type);
        b.create<vector::StoreOp>(loc, two, memory, ValueRange{plus(start, number(column))});
      }
    });
}

} // namespace zero::codegen

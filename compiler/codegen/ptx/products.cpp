//===- products.cpp - products of tiles -------------------------------------------------------------------===//
#include "compiler/codegen/ptx/tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {

Fragment TileEmitter::timesTransposed(const Tile &a, const Tile &right) {
  if (warpgroup) return timesTransposedByWarpgroup(a, right);
  return bf16 ? timesTransposedByUnits(a, right) : timesTransposedByFma(a, right);
}

Fragment TileEmitter::plusTimes(const Fragment &sum, const Fragment &f, const Tile &right) {
  if (warpgroup) return plusTimesByWarpgroup(sum, f, right);
  return bf16 ? plusTimesByUnits(sum, f, right) : plusTimesByFma(sum, f, right);
}

//===----------------------------------------------------------------------===//
// By fused multiply-adds
//===----------------------------------------------------------------------===//

static constexpr int64_t kColumns8 = 8; // of a block of a fragment
static constexpr int64_t kTerms = 4;    // of an element's sum, that are read at once

Fragment TileEmitter::timesTransposedByFma(const Tile &a, const Tile &right) {
  return loop(scopes.size() - 1, number(0), number(a.columns), kTerms, std::nullopt, zeros(right.rows), [&](Value k, Values sum) {
    PerRow mine;
    for (unsigned row = 0; row < rows(); ++row) mine.push_back(floatsAt(a, this->row(row), k, kTerms));
    for (int64_t i = 0; i < right.rows; i += kColumns8)
      for (int64_t n : {0, 1}) {
        Value other = floatsAt(right, plus(pair, number(i + n)), k, kTerms);
        for (unsigned row = 0; row < rows(); ++row) {
          Value &s = sum[placeOf(row, i, right.rows) + size_t(n)];
          for (int64_t term = 0; term < kTerms; ++term) s = fma(element(mine[row], term), element(other, term), s);
        }
      }
    return sum;
  });
}

Fragment TileEmitter::plusTimesByFma(const Fragment &sum, const Fragment &f, const Tile &right) {
  warpBarrier(); // until the warp has read what was there
  for (unsigned row = 0; row < rows(); ++row)
    for (int64_t column = 0; column < right.rows; column += kColumns8) {
      size_t i = placeOf(row, column, right.rows);
      Value at = plus(plus(times(this->row(row), left.stride), pair), number(column));
      b.create<vector::StoreOp>(loc, joined(f[i], f[i + 1]), left.memory, ValueRange{at});
    }
  warpBarrier();
  return loop(scopes.size() - 1, number(0), number(right.rows), kTerms, std::nullopt, sum, [&](Value k, Values sums) {
    PerRow mine;
    for (unsigned row = 0; row < rows(); ++row) mine.push_back(floatsAt(left, this->row(row), k, kTerms));
    for (int64_t term = 0; term < kTerms; ++term)
      for (int64_t column = 0; column < right.columns; column += kColumns8) {
        Value two = floatsAt(right, plus(k, number(term)), plus(pair, number(column)), 2);
        for (unsigned row = 0; row < rows(); ++row)
          for (int64_t n : {0, 1}) {
            Value &s = sums[placeOf(row, column, right.columns) + size_t(n)];
            s = fma(element(mine[row], term), element(two, n), s);
          }
      }
    return sums;
  });
}

//===----------------------------------------------------------------------===//
// By the matrix units: m16n8k16
//===----------------------------------------------------------------------===//

static constexpr int64_t kStep = 16; // terms of an element's sum in one product, and columns of two

Value TileEmitter::placeIn(const Tile &tile, Value row, Value column) {
  return sharedAddress(tile.memory, inTile(tile, row, column), bytesOf(Scalar::BF16));
}

Words TileEmitter::matrices(const Tile &tile, Value place, int64_t row, int64_t column, bool transposed) {
  Value address = further(place, (row * tile.stride + column) * bytesOf(Scalar::BF16));
  Type i32 = b.getI32Type(), words = LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
  Value loaded = intrinsic(transposed ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16" : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                           words, {address});
  Words result;
  for (int64_t i = 0; i < 4; ++i) result[size_t(i)] = b.create<LLVM::ExtractValueOp>(loc, loaded, i);
  return result;
}

void TileEmitter::multiply(MutableArrayRef<Value> sum, const Words &words, Value upper, Value lower) {
  SmallVector<Value> operands(words.begin(), words.end());
  operands.append({upper, lower});
  operands.append(sum.begin(), sum.end());
  Type four = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  Value made = intrinsic("llvm.nvvm.mma.m16n8k16.row.col.bf16", four, operands);
  for (auto [i, s] : llvm::enumerate(sum)) s = b.create<LLVM::ExtractValueOp>(loc, made, int64_t(i));
}

/// Threads 0 to 15 name its rows, the others the same rows 8 columns on.
Value TileEmitter::leftPlace(const Tile &a) {
  return placeIn(a, plus(times(warp, strips * kStep), remainder(inWarp, kStep)), times(quotient(inWarp, kStep), kColumns8));
}

/// One step of each strip.
SmallVector<Words> TileEmitter::leftWords(const Tile &a, Value place, int64_t column) {
  SmallVector<Words> words;
  for (unsigned strip = 0; strip < strips; ++strip) words.push_back(matrices(a, place, strip * kStep, column, false));
  return words;
}

Tile TileEmitter::kept(Tile a) {
  if (!bf16) return a;
  Value place = leftPlace(a);
  for (int64_t k = 0; k < a.columns; k += kStep) a.words.append(leftWords(a, place, k));
  return a;
}

Fragment TileEmitter::timesTransposedByUnits(const Tile &a, const Tile &right) {
  Fragment sum = zeros(right.rows);
  // Of the right operand, whose rows are columns of the product, 8 threads name 8 rows, the next the same rows 8 columns on, and then 8
  // rows more.
  Value rightRow = plus(times(quotient(inWarp, kStep), kColumns8), remainder(inWarp, kColumns8));
  Value rightColumn = times(remainder(quotient(inWarp, kColumns8), 2), kColumns8);
  Value place = a.words.empty() ? leftPlace(a) : Value(), rightPlace = placeIn(right, rightRow, rightColumn);
  for (int64_t k = 0; k < a.columns; k += kStep) {
    auto left = a.words.empty() ? leftWords(a, place, k) : SmallVector<Words>(ArrayRef(a.words).slice(size_t(k / kStep) * strips, strips));
    for (int64_t n = 0; n < right.rows; n += kStep) {
      Words words = matrices(right, rightPlace, n, k, false);
      for (unsigned strip = 0; strip < strips; ++strip) {
        auto sums = MutableArrayRef(sum).slice(strip * stripSize(right.rows) + size_t(n / 2), kColumns8);
        multiply(sums.take_front(4), left[strip], words[0], words[1]);
        multiply(sums.drop_front(4), left[strip], words[2], words[3]);
      }
    }
  }
  return sum;
}

/// Two blocks of a fragment are, rounded, the left operand of a step as they are.
Fragment TileEmitter::plusTimesByUnits(const Fragment &sum, const Fragment &f, const Tile &right) {
  Fragment sums = sum;
  size_t size = stripSize(right.columns);
  Value place = placeIn(right, remainder(inWarp, kStep), times(quotient(inWarp, kStep), kColumns8));
  for (int64_t k = 0; k < right.rows; k += kStep) {
    SmallVector<Words> left(strips);
    for (unsigned strip = 0; strip < strips; ++strip)
      for (size_t i = 0; i < 4; ++i) {
        size_t from = strip * stripSize(right.rows) + size_t(k / 2) + 2 * i;
        left[strip][i] = math.packed(f[from], f[from + 1]);
      }
    for (int64_t n = 0; n < right.columns; n += kStep) {
      Words words = matrices(right, place, k, n, true);
      for (unsigned strip = 0; strip < strips; ++strip) {
        auto rest = MutableArrayRef(sums).slice(strip * size, size).drop_front(size_t(n / 2));
        multiply(rest.take_front(4), left[strip], words[0], words[1]);
        if (rest.size() > 4) multiply(rest.slice(4, 4), left[strip], words[2], words[3]);
      }
    }
  }
  return sums;
}

} // namespace zero::codegen

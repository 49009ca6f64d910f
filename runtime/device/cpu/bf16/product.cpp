// After GotoBLAS (Goto and van de Geijn, 2008): of both operands parts are packed that stay in the caches while they are used.
#include "runtime/device/cpu/bf16/product.h"
#include "runtime/device/cpu/bf16/block.h"
#include <algorithm>
#include <immintrin.h>

namespace zero::runtime::bf16 {
namespace {

constexpr int64_t kSums = kBlock * kBlock; // of a block of the result

// Of depth, what a block of 32 rows and one of 32 columns bring into the innermost cache of 48 KiB together. In the next cache, of 2 MiB,
// lie what is packed of A, as far as possible for all of the depth, sums of the result, and what is packed of B.
constexpr int64_t kDepthAtOnce = 256, kMostOfA = 512 << 10, kMostSums = 96 << 10, kMostRows = 1024, kFewRows = 256,
                  kFewColumns = 4 * kBlock, kMostColumns = 512;
// A result in f32 of so many bytes leaves nothing of itself in that cache for whoever reads it next.
constexpr int64_t kStreamedFrom = 2 << 20;

// How a product is blocked.
struct Blocking {
  int64_t rows, columns; // of the result that are computed at once
  bool keepsA;           // those rows of A are packed once, and not again for each of the columns

  explicit Blocking(const MatMulShape &s) {
    int64_t most = std::clamp(kMostOfA / roundedUp(s.k, kDepth) / kBlock * kBlock, kFewRows, kMostRows);
    int64_t parts = (s.m + most - 1) / most;
    rows = roundedUp((s.m + parts - 1) / parts, kBlock);
    keepsA = packedElements(rows, s.k) <= 2 * kMostOfA;
    columns = std::min(std::clamp(kMostSums / rows / kBlock * kBlock, kFewColumns, kMostColumns), roundedUp(s.n, kBlock));
  }
  int64_t elementsOfA(int64_t k) const { return packedElements(rows, keepsA ? k : std::min(k, kDepthAtOnce)); }
  int64_t elementsOfB(int64_t k) const { return packedElements(columns, std::min(k, kDepthAtOnce)); }
};

ZERO_BF16_INLINE __mmask16 firstOf(int64_t columns) { return columns >= 16 ? 0xffff : columns <= 0 ? 0 : (1U << columns) - 1; }

ZERO_BF16_INLINE __m512 widened(__m256i value) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(value), 16)); }

ZERO_BF16_INLINE void roundBlock(const float *sums, int64_t rows, int64_t columns, bool accumulate, Bf16 *c, int64_t ldc) {
  __mmask16 low = firstOf(columns), high = firstOf(columns - kRows);
  __mmask32 both = low | uint32_t(high) << 16;
  for (int64_t r = 0; r < rows; ++r, sums += kBlock, c += ldc) {
    __m512 first = _mm512_load_ps(sums), second = _mm512_load_ps(sums + kRows);
    if (accumulate) {
      first = _mm512_add_ps(first, widened(_mm256_maskz_loadu_epi16(low, c)));
      second = _mm512_add_ps(second, widened(_mm256_maskz_loadu_epi16(high, c + kRows)));
    }
    _mm512_mask_storeu_epi16(c, both, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
  }
}

ZERO_BF16_INLINE void copyBlock(const float *from, int64_t ldFrom, float *to, int64_t ldTo, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t half = 0; half < kBlock; half += kRows) {
      __mmask16 mask = firstOf(columns - half);
      _mm512_mask_storeu_ps(to + r * ldTo + half, mask, _mm512_maskz_loadu_ps(mask, from + r * ldFrom + half));
    }
}

// A whole block, past the caches: what it replaces need not be read.
ZERO_BF16_INLINE void streamBlock(const float *sums, float *c, int64_t ldc) {
  for (int64_t r = 0; r < kBlock; ++r)
    for (int64_t half = 0; half < kBlock; half += kRows) _mm512_stream_ps(c + r * ldc + half, _mm512_load_ps(sums + r * kBlock + half));
}

// A block of the result over a part of depth, the first one and the last one or neither.
struct Part {
  bool first, last;
  bool streams; // the whole result goes past the caches
};
ZERO_BF16_INLINE void block(MultiplyBlock multiply, const MatMulShape &s, Part part, const Bf16 *a, const Bf16 *b, int64_t steps,
                            float *sums, void *c, int64_t rows, int64_t columns, Prefetch &prefetch, int64_t lines) {
  alignas(64) float result[kSums];
  auto *wide = static_cast<float *>(c);
  bool toF32 = s.cDtype == plan::F32, whole = rows == kBlock && columns == kBlock;
  bool aligned = reinterpret_cast<uintptr_t>(wide) % 64 == 0 && s.ldc % kRows == 0, streams = part.streams && aligned && !s.accumulate;
  Sums inC{wide, s.ldc}, beside{sums, kBlock}, between{result, kBlock};
  Sums from = part.first ? Sums{} : beside, to = !part.last ? beside : toF32 && whole && !streams ? inC : between;
  if (part.first && s.accumulate && toF32) {
    if (!whole) copyBlock(wide, s.ldc, result, kBlock, rows, columns);
    from = whole ? inC : between;
  }
  multiply(a, b, steps, rows, from, to, prefetch, lines);
  if (to.data != result) return;
  if (!toF32) return roundBlock(result, rows, columns, s.accumulate, static_cast<Bf16 *>(c), s.ldc);
  whole ? streamBlock(result, wide, s.ldc) : copyBlock(result, kBlock, wide, s.ldc, rows, columns);
}

ZERO_BF16 void run(MultiplyBlock multiply, const MatMulShape &s, const Blocking &blocking, const Operand &a, const Operand &b, char *c,
                   Bf16 *packedA, Bf16 *packedB, float *sums) {
  int64_t sizeC = s.cDtype == plan::F32 ? 4 : 2;
  bool streams = s.m * s.n * sizeC >= kStreamedFrom;
  for (int64_t row = 0; row < s.m; row += blocking.rows) {
    int64_t rows = std::min(blocking.rows, s.m - row), sumsOfColumns = roundedUp(rows, kBlock) / kBlock * kSums;
    for (int64_t column = 0; column < s.n; column += blocking.columns) {
      int64_t columns = std::min(blocking.columns, s.n - column);
      for (int64_t depth = 0; depth < s.k; depth += kDepthAtOnce) {
        int64_t depths = std::min(kDepthAtOnce, s.k - depth), steps = roundedUp(depths, kDepth) / kDepth;
        Bf16 *partA = packedA + (blocking.keepsA ? packedElements(rows, depth) : 0);
        if (column == 0 || !blocking.keepsA) packA(a, row, rows, depth, depths, partA);
        packB(b, column, columns, depth, depths, packedB);
        Prefetch prefetch;
        if (depth + depths < s.k)
          prefetch = Prefetch(b, column, columns, depth + depths, std::min(kDepthAtOnce, s.k - depth - depths));
        else if (column + columns < s.n)
          prefetch = Prefetch(b, column + columns, std::min(blocking.columns, s.n - column - columns), 0, std::min(kDepthAtOnce, s.k));
        int64_t blocks = (rows + kBlock - 1) / kBlock * ((columns + kBlock - 1) / kBlock);
        int64_t lines = (prefetch.lines() + blocks * steps - 1) / (blocks * steps);
        for (int64_t j = 0; j < columns; j += kBlock)
          for (int64_t i = 0; i < rows; i += kBlock)
            block(multiply, s, {depth == 0, depth + depths == s.k, streams}, partA + i / kBlock * steps * 2 * kRegister,
                  packedB + j / kBlock * steps * 2 * kRegister, steps, sums + j / kBlock * sumsOfColumns + i / kBlock * kSums,
                  c + ((row + i) * s.ldc + column + j) * sizeC, std::min(kBlock, rows - i), std::min(kBlock, columns - j), prefetch, lines);
      }
    }
  }
  _mm_sfence(); // what was streamed is there for whoever is told that the product is
}

} // namespace

size_t roomOf(const MatMulShape &shape) {
  Blocking blocking(shape);
  auto bf16 = static_cast<size_t>(blocking.elementsOfA(shape.k) + blocking.elementsOfB(shape.k));
  return bf16 * sizeof(Bf16) + static_cast<size_t>(blocking.rows * blocking.columns) * sizeof(float);
}

size_t mostRoomOf(int64_t m, int64_t n, int64_t k) {
  int64_t ofA = std::min(packedElements(std::min(m, kMostRows), k), 2 * kMostOfA);
  int64_t ofB = packedElements(std::min(n, kMostColumns), std::min(k, kDepthAtOnce));
  int64_t sums = std::min(roundedUp(m, kBlock) * roundedUp(n, kBlock), std::max(kMostSums, kMostRows * kFewColumns));
  return static_cast<size_t>(ofA + ofB) * sizeof(Bf16) + static_cast<size_t>(sums) * sizeof(float);
}

void product(Unit unit, const MatMulShape &shape, const void *a, const void *b, void *c, std::byte *room) {
  Blocking blocking(shape);
  auto *packedA = reinterpret_cast<Bf16 *>(room), *packedB = packedA + blocking.elementsOfA(shape.k);
  auto *sums = reinterpret_cast<float *>(packedB + blocking.elementsOfB(shape.k));
  Held held(unit);
  run(unit == Unit::Matrices ? multiplyOnMatrices : multiplyOnVectors, shape, blocking,
      {static_cast<const Bf16 *>(a), shape.lda, !shape.transA}, {static_cast<const Bf16 *>(b), shape.ldb, shape.transB},
      static_cast<char *>(c), packedA, packedB, sums);
}

} // namespace zero::runtime::bf16

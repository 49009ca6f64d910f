#include "runtime/device/cpu/bf16/packing.h"
#include "runtime/device/cpu/bf16/unit.h"
#include <immintrin.h>

namespace zero::runtime::bf16 {
namespace {

constexpr int64_t kPair = 2 * kRegister; // elements of the two registers of a block and a depth

// The first `count` of 32 elements, and zeros.
ZERO_BF16_INLINE __m512i load(const Bf16 *from, int64_t count) {
  if (count >= kDepth) return _mm512_loadu_si512(from);
  return count <= 0 ? _mm512_setzero_si512() : _mm512_maskz_loadu_epi16((1U << count) - 1, from);
}

// Elements of two rows, each beside the one below it: of 16 columns in `low`, of the 16 after them in `high`.
ZERO_BF16_INLINE void interleave(__m512i above, __m512i below, __m512i &low, __m512i &high) {
  alignas(64) static constexpr uint16_t kOrder[64] = {
      0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47,
      16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
  low = _mm512_permutex2var_epi16(above, _mm512_load_si512(kOrder), below);
  high = _mm512_permutex2var_epi16(above, _mm512_load_si512(kOrder + 32), below);
}

// 16 rows of 16 numbers of 32 bits.
ZERO_BF16_INLINE void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j) {
      t[8 * i + j] = _mm512_shuffle_i32x4(r[8 * i + j], r[8 * i + 4 + j], 0x88);
      t[8 * i + 4 + j] = _mm512_shuffle_i32x4(r[8 * i + j], r[8 * i + 4 + j], 0xdd);
    }
  for (int j = 0; j < 8; ++j) {
    r[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
    r[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xdd);
  }
}

ZERO_BF16_INLINE void store(const __m512i (&rows)[16], Bf16 *to) {
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * kDepth, rows[i]);
}

// Where depth is contiguous: 16 rows of memory over a depth are a register of A, and transposed in pairs one of B.
ZERO_BF16 void packRows(const Operand &operand, bool transposed, int64_t outer, int64_t count, int64_t depth, int64_t depths, Bf16 *to) {
  int64_t steps = roundedUp(depths, kDepth) / kDepth;
  for (int64_t block = 0; block < count; block += kBlock)
    for (int64_t half = 0; half < kBlock; half += kRows) {
      Bf16 *registers = to + block / kBlock * steps * kPair + half / kRows * kRegister;
      for (int64_t step = 0; step < steps; ++step, registers += kPair) {
        __m512i rows[16];
        for (int64_t i = 0; i < kRows; ++i) {
          int64_t at = block + half + i;
          rows[i] = load(operand.at(outer + at, depth + step * kDepth), at < count ? depths - step * kDepth : 0);
        }
        if (transposed) transpose(rows);
        store(rows, registers);
      }
    }
}

// Where the outer extent is: two rows of memory interleaved are a row of B, and 16 such rows transposed a register of A.
ZERO_BF16 void packColumns(const Operand &operand, bool transposed, int64_t outer, int64_t count, int64_t depth, int64_t depths, Bf16 *to) {
  int64_t steps = roundedUp(depths, kDepth) / kDepth;
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t block = 0; block < count; block += kBlock) {
      Bf16 *registers = to + (block / kBlock * steps + step) * kPair;
      __m512i low[16], high[16];
      for (int64_t i = 0; i < 16; ++i) {
        int64_t at = step * kDepth + 2 * i, left = count - block;
        const Bf16 *above = operand.at(outer + block, depth + at);
        interleave(load(above, at < depths ? left : 0), load(above + operand.ld, at + 1 < depths ? left : 0), low[i], high[i]);
      }
      if (transposed) transpose(low), transpose(high);
      store(low, registers);
      store(high, registers + kRegister);
    }
}

} // namespace

void packA(const Operand &operand, int64_t outer, int64_t count, int64_t depth, int64_t depths, Bf16 *to) {
  (operand.contiguous ? packRows : packColumns)(operand, !operand.contiguous, outer, count, depth, depths, to);
}

void packB(const Operand &operand, int64_t outer, int64_t count, int64_t depth, int64_t depths, Bf16 *to) {
  (operand.contiguous ? packRows : packColumns)(operand, operand.contiguous, outer, count, depth, depths, to);
}

} // namespace zero::runtime::bf16

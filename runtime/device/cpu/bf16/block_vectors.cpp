#include "runtime/device/cpu/bf16/block.h"
#include "runtime/device/cpu/bf16/unit.h"
#include <cstring>
#include <immintrin.h>

namespace zero::runtime::bf16 {
namespace {

// Rows whose sums stay in registers, two for each: enough of them to cover an instruction's latency, and few enough to leave registers for
// two of B and one of A.
constexpr int kStrip = 8;

// The pairs of depth of A, each for all columns, times those of B.
ZERO_BF16_INLINE void strip(const Bf16 *a, const Bf16 *b, int64_t steps, Sums from, Sums to, Prefetch &prefetch, int64_t lines) {
  __m512 sums[kStrip][2];
#pragma GCC unroll 8
  for (int r = 0; r < kStrip; ++r)
    for (int half = 0; half < 2; ++half)
      sums[r][half] = from.data ? _mm512_loadu_ps(from.data + r * from.ld + half * kRows) : _mm512_setzero_ps();
  for (int64_t s = 0; s < steps; ++s, a += 2 * kRegister, b += 2 * kRegister) {
    for (int64_t pair = 0; pair < kDepth / 2; ++pair) {
      auto left = reinterpret_cast<__m512bh>(_mm512_load_si512(b + pair * kDepth)),
           right = reinterpret_cast<__m512bh>(_mm512_load_si512(b + kRegister + pair * kDepth));
#pragma GCC unroll 8
      for (int r = 0; r < kStrip; ++r) {
        int32_t both;
        std::memcpy(&both, a + r * kDepth + 2 * pair, sizeof both);
        auto row = reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], row, left);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], row, right);
      }
    }
    for (int64_t i = 0; i < lines; ++i) prefetch.next();
  }
#pragma GCC unroll 8
  for (int r = 0; r < kStrip; ++r)
    for (int half = 0; half < 2; ++half) _mm512_storeu_ps(to.data + r * to.ld + half * kRows, sums[r][half]);
}

} // namespace

ZERO_BF16 void multiplyOnVectors(const Bf16 *a, const Bf16 *b, int64_t steps, int64_t rows, Sums from, Sums to, Prefetch &prefetch,
                                 int64_t lines) {
  for (int64_t row = 0; row < rows; row += kStrip) {
    const Bf16 *ofA = a + row / kRows * kRegister + row % kRows * kDepth;
    Sums rowsFrom{from.data ? from.data + row * from.ld : nullptr, from.ld}, rowsTo{to.data + row * to.ld, to.ld};
    strip(ofA, b, steps, rowsFrom, rowsTo, prefetch, row == 0 ? lines : 0);
  }
}

} // namespace zero::runtime::bf16

#include "runtime/device/cpu/bf16/block.h"
#include "runtime/device/cpu/bf16/unit.h"
#include <immintrin.h>

namespace zero::runtime::bf16 {

// Sums in four registers, 16 x 16 each; two of A and two of B, of which each is used twice.
ZERO_AMX void multiplyOnMatrices(const Bf16 *a, const Bf16 *b, int64_t steps, int64_t, Sums from, Sums to, Prefetch &prefetch,
                                 int64_t lines) {
  if (from.data) {
    _tile_loadd(0, from.data, from.ld * 4);
    _tile_loadd(1, from.data + 16, from.ld * 4);
    _tile_loadd(2, from.data + 16 * from.ld, from.ld * 4);
    _tile_loadd(3, from.data + 16 * from.ld + 16, from.ld * 4);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  Prefetch ahead = prefetch;
  for (int64_t s = 0; s < steps; ++s, a += 2 * kRegister, b += 2 * kRegister) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kRegister, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kRegister, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    for (int64_t i = 0; i < lines; ++i) ahead.next();
  }
  prefetch = ahead;
  _tile_stored(0, to.data, to.ld * 4);
  _tile_stored(1, to.data + 16, to.ld * 4);
  _tile_stored(2, to.data + 16 * to.ld, to.ld * 4);
  _tile_stored(3, to.data + 16 * to.ld + 16, to.ld * 4);
}

} // namespace zero::runtime::bf16

#include "runtime/device/cpu/half/half.h"
#include "runtime/base/every_level.h"
#include <bit>

namespace zero::runtime {
namespace {

[[gnu::always_inline]] inline float widened(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

[[gnu::always_inline]] inline Bf16 rounded(float value, Bf16) {
  auto bits = std::bit_cast<uint32_t>(value);
  bool isNan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<Bf16>((isNan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Exponent and fraction lie in f32 as they do in f16, but for the exponent's bias, which a product puts right: 2^-112 of what is meant.
// That product is exact for the smallest numbers as well.
[[gnu::always_inline]] inline float widened(F16 value) {
  auto bits = static_cast<uint32_t>(value);
  uint32_t size = bits & 0x7fff, sign = (bits & 0x8000) << 16;
  float finite = std::bit_cast<float>(size << 13) * 0x1p112f;
  uint32_t special = size << 13 | 0x7f800000; // infinite, or NaN
  return std::bit_cast<float>((size >= 0x7c00 ? special : std::bit_cast<uint32_t>(finite)) | sign);
}

[[gnu::always_inline]] inline F16 rounded(float value, F16) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  uint32_t normal = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
  // Below 2^-14 f16 has as many places after the point as an f32 of 0.5 has: adding that rounds, and leaves the fraction below it.
  uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  uint32_t result = size < 0x38800000 ? small : normal;
  result = size >= 0x477ff000 ? 0x7c00 : result; // halfway from the largest to 2^16, and beyond
  result = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : result;
  return static_cast<F16>(result | sign);
}

template <typename Half>
[[gnu::always_inline]] inline void widenRows(int64_t rows, int64_t columns, const Half *from, int64_t ldFrom, float *to, int64_t ldTo) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * ldTo + c] = widened(from[r * ldFrom + c]);
}
template <typename Half>
[[gnu::always_inline]] inline void roundRows(int64_t rows, int64_t columns, const float *from, int64_t ldFrom, Half *to, int64_t ldTo) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * ldTo + c] = rounded(from[r * ldFrom + c], Half{});
}

} // namespace

ZERO_EVERY_LEVEL void widen(int64_t rows, int64_t columns, const Bf16 *from, int64_t ldFrom, float *to, int64_t ldTo) {
  widenRows(rows, columns, from, ldFrom, to, ldTo);
}
ZERO_EVERY_LEVEL void widen(int64_t rows, int64_t columns, const F16 *from, int64_t ldFrom, float *to, int64_t ldTo) {
  widenRows(rows, columns, from, ldFrom, to, ldTo);
}
ZERO_EVERY_LEVEL void round(int64_t rows, int64_t columns, const float *from, int64_t ldFrom, Bf16 *to, int64_t ldTo) {
  roundRows(rows, columns, from, ldFrom, to, ldTo);
}
ZERO_EVERY_LEVEL void round(int64_t rows, int64_t columns, const float *from, int64_t ldFrom, F16 *to, int64_t ldTo) {
  roundRows(rows, columns, from, ldFrom, to, ldTo);
}

} // namespace zero::runtime

#include "runtime/base/every_level.h"
#include "runtime/checkpoint/first_values.h"
#include "runtime/data/permutation.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace zero::runtime {
namespace {

constexpr uint64_t kPoints = 256; // made at once

// Of normal numbers from 2^-24 to 1. With m in [1/sqrt(2), sqrt(2)), log m = 2 artanh((m - 1) / (m + 1)), whose series ends where f32 does.
[[gnu::always_inline]] inline float logarithm(float u) {
  auto bits = std::bit_cast<int32_t>(u);
  int32_t exponent = (bits - 0x3f3504f3) >> 23;
  float m = std::bit_cast<float>(bits - (exponent << 23));
  float s = (m - 1.0f) / (m + 1.0f), z = s * s;
  float rest = z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
  return static_cast<float>(exponent) * 0.693147181f + 2.0f * (s + s * rest);
}

// Sine and cosine of x in [-pi/4, pi/4], z its square: Taylor's series.
[[gnu::always_inline]] inline float sine(float x, float z) {
  return x + x * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880))));
}
[[gnu::always_inline]] inline float cosine(float z) { return 1.0f - z * (0.5f - z * (1.0f / 24 - z * (1.0f / 720 - z * (1.0f / 40320)))); }

// Points `first` to first + kPoints, two elements each. In loops that become vector code, and without a library whose logarithm is another
// one elsewhere: so weights are the same on all machines.
ZERO_EVERY_LEVEL void makePoints(uint64_t key, uint64_t first, float std, float *elements) {
  std::array<int32_t, kPoints> distance, turn; // of 24 bits each
  for (uint64_t k = 0; k < kPoints; ++k) {
    uint64_t bits = mix(key + first + k);
    distance[k] = static_cast<int32_t>(bits >> 40), turn[k] = static_cast<int32_t>(bits & 0xffffff);
  }
  std::array<float, kPoints> x, y;
  for (uint64_t k = 0; k < kPoints; ++k) {
    float u = (static_cast<float>(distance[k]) + 1.0f) * 0x1p-24f; // (0, 1]: the logarithm is finite
    float radius = std * std::sqrt(-2.0f * logarithm(u));
    int32_t quarter = (turn[k] + (1 << 21)) >> 22; // the nearest
    float angle = static_cast<float>(turn[k] - (quarter << 22)) * (6.283185307f * 0x1p-24f), z = angle * angle;
    float s = sine(angle, z), c = cosine(z);
    float across = quarter & 1 ? s : c, up = quarter & 1 ? c : s;
    x[k] = radius * ((quarter + 1) & 2 ? -across : across);
    y[k] = radius * (quarter & 2 ? -up : up);
  }
  for (uint64_t k = 0; k < kPoints; ++k) elements[2 * k] = x[k], elements[2 * k + 1] = y[k];
}

} // namespace

// Box-Muller on a counter: elements 2k and 2k + 1 are the two coordinates of the k-th point.
void normalNumbers(uint64_t seed, float std, uint64_t start, uint64_t count, float *out) {
  uint64_t key = mix(seed), end = start + count;
  std::array<float, 2 * kPoints> made;
  for (uint64_t first = start / 2; 2 * first < end; first += kPoints) {
    makePoints(key, first, std, made.data());
    uint64_t from = std::max(start, 2 * first), until = std::min(end, 2 * (first + kPoints));
    std::copy(&made[from - 2 * first], &made[0] + (until - 2 * first), out + (from - start));
  }
}

} // namespace zero::runtime

// Numbers of f32, bf16 and f16 as cuBLASLt has them, and what it makes of them, from the documented meaning alone.
#pragma once
#include "runtime/device/cuda/blas_lt.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>
#include <vector>

namespace zero::fake {

using namespace runtime::cuda;

inline float widened(const std::byte *at, int type) {
  uint16_t half;
  if (type == kReal32) {
    float value;
    return std::memcpy(&value, at, 4), value;
  }
  std::memcpy(&half, at, 2);
  if (type == kRealBf16) return std::bit_cast<float>(uint32_t(half) << 16);
  int exponent = half >> 10 & 31, fraction = half & 1023;
  float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                : exponent     ? std::ldexp(1024.0f + static_cast<float>(fraction), exponent - 25)
                               : std::ldexp(static_cast<float>(fraction), -24);
  return half >> 15 ? -value : value;
}

// To nearest even.
inline uint16_t roundedToF16(float value) {
  auto sign = static_cast<uint16_t>(std::signbit(value) << 15);
  if (std::isnan(value)) return 0x7e00;
  float size = std::fabs(value);
  if (size >= 65520.0f) return sign | 0x7c00;
  int exponent = size > 0 ? std::max(std::ilogb(size), -14) : -14;
  auto units = static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 10 - exponent))); // 1024 to 2048, less for a subnormal one
  return static_cast<uint16_t>(sign | (units + ((exponent + 14) << 10)));
}

inline void round(std::byte *at, int type, float value) {
  if (type == kReal32) return static_cast<void>(std::memcpy(at, &value, 4));
  auto bits = std::bit_cast<uint32_t>(value);
  uint16_t half = type == kReal16     ? roundedToF16(value)
                  : std::isnan(value) ? 0x7fc0
                                      : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  std::memcpy(at, &half, 2);
}

// The same as matrix units take f32: of 10 bits of fraction, rounded to even.
inline std::vector<float> inTf32(std::vector<float> numbers) {
  for (float &each : numbers) {
    auto bits = std::bit_cast<uint32_t>(each);
    if (std::isfinite(each)) each = std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
  }
  return numbers;
}

// GELU in its tanh form: x / 2 · (1 + tanh u) with u = sqrt(2 / pi) · (x + 0.044715 x^3), and what that rises by.
inline double cubic(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
inline float gelu(float x) { return static_cast<float>(0.5 * double(x) * (1 + std::tanh(cubic(double(x))))); }
inline float geluSlope(float at) {
  double x = double(at), t = std::tanh(cubic(x)), rise = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return static_cast<float>(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * rise);
}

} // namespace zero::fake

//===- random.h - the counter-based generator of nn.random and nn.dropout ------------------------===//
// Every number is a function of (seed, id, index) alone, so any rank, tile or recomputation draws the same
// numbers. Only 32-bit multiplications, additions, exclusive ors and right shifts, so that it vectorises;
// generated code repeats exactly this arithmetic (all wrap modulo 2^32):
//
//   mix(x):  x ^= x >> 16;  x *= 0x7feb352d;  x ^= x >> 15;  x *= 0x846ca68b;  x ^= x >> 16
//   once per tensor, from the 64-bit seed and the low 32 bits of the id:
//     k0 = mix(lo(seed) ^ mix(hi(seed) ^ mix(id + 0x9e3779b9)))
//     k1 = mix(k0 + 0x9e3779b9)
//   per element, from its 64-bit index:
//     x = lo(index) ^ k0
//     x ^= x >> 16;  x *= 0x7feb352d
//     x += k1 + hi(index)
//     x ^= x >> 15;  x *= 0x846ca68b
//     x ^= x >> 16
//     result = (x >> 8) * 2^-24          in [0, 1), exact in f32
//
// The second key enters between the rounds so that two streams are not permutations of one another.
// nn.dropout keeps an element where the number is >= rate and multiplies it by 1 / (1 - rate), the factor
// rounded to f32 once.
#pragma once
#include <cstdint>

namespace zero::nn {

struct RandomKey {
  uint32_t k0, k1;
};

constexpr uint32_t mixBits(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

constexpr RandomKey randomKey(uint64_t seed, uint64_t id) {
  uint32_t k0 = mixBits(uint32_t(seed) ^ mixBits(uint32_t(seed >> 32) ^ mixBits(uint32_t(id) + 0x9e3779b9u)));
  return {k0, mixBits(k0 + 0x9e3779b9u)};
}

/// Uniform in [0, 1).
constexpr float uniform(RandomKey key, uint64_t index) {
  uint32_t x = uint32_t(index) ^ key.k0;
  x ^= x >> 16;
  x *= 0x7feb352du;
  x += key.k1 + uint32_t(index >> 32);
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return float(x >> 8) * 0x1p-24f;
}

} // namespace zero::nn

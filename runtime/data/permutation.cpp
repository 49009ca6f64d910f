#include "runtime/data/permutation.h"

namespace zero::runtime {
namespace {

constexpr unsigned kRounds = 8;
constexpr uint64_t kDomain = 0x73687566666c6521; // other numbers than those of dropout under the same seed

} // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n(n), key(mix(seed ^ mix(epoch ^ kDomain))) {
  while (half < 32 && (n - 1) >> 2 * half != 0) ++half;
}

uint64_t Permutation::encrypt(uint64_t value) const {
  uint64_t mask = (uint64_t(1) << half) - 1, left = value >> half, right = value & mask;
  for (unsigned round = 0; round < kRounds; ++round) {
    uint64_t next = left ^ (mix(key + (uint64_t(round) << 32 | right)) & mask);
    left = right, right = next;
  }
  return left << half | right;
}

uint64_t Permutation::operator()(uint64_t i) const {
  do {
    i = encrypt(i);
  } while (i >= n);
  return i;
}

} // namespace zero::runtime

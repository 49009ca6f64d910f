// A pseudo-random order of [0, n) that needs no memory: place i of epoch e under a seed has the same value on every rank and in every
// run, and no place depends on another one.
#pragma once
#include <cstdint>

namespace zero::runtime {

// SplitMix64's output function: a bijection that spreads its argument over all 64 bits.
constexpr uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// A Feistel network over the smallest even number of bits that holds n values. Its rounds are bijections whatever their functions are, and
// walking along a cycle until a value lies below n makes the network a bijection of [0, n); it takes fewer than four turns on average.
class Permutation {
public:
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch); // n >= 1
  uint64_t operator()(uint64_t i) const;                  // of i < n

private:
  uint64_t encrypt(uint64_t value) const;

  uint64_t n, key;
  unsigned half = 1; // bits of each half
};

} // namespace zero::runtime

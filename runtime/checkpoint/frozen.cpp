#include "runtime/checkpoint/frozen.h"
#include <bit>
#include <vector>

namespace zero::runtime {
namespace {

// SplitMix64's finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

} // namespace

uint64_t frozenSum(uint64_t start, std::span<const float> values) {
  uint64_t sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += mixed((start + i) * 0x9e3779b97f4a7c15 + std::bit_cast<uint32_t>(values[i]));
  return sum;
}

void shareSums(Communicator &communicator, FrozenSums &sums) {
  sums.whole = sums.owned;
  if (sums.owned.empty() || communicator.world() == 1) return;
  std::vector<uint64_t> sent, received(sums.owned.size() * static_cast<size_t>(communicator.world()));
  for (const auto &[name, sum] : sums.owned) sent.push_back(sum);
  communicator.allGather(sent.data(), received.data(), sent.size() * sizeof(uint64_t));
  size_t place = 0;
  for (auto &[name, sum] : sums.whole) {
    sum = 0;
    for (size_t i = place; i < received.size(); i += sent.size()) sum += received[i];
    ++place;
  }
}

} // namespace zero::runtime

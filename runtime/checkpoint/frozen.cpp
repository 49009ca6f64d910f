#include "runtime/checkpoint/frozen.h"
#include "runtime/base/every_level.h"
#include <bit>
#include <vector>

namespace zero::runtime {

// Each element's bits times an odd number of 32 bits that its index makes by multiplicative hashing (Knuth, "The Art of Computer
// Programming", volume 3, 6.4): what processors do with many at a time. No change of one element leaves the sum as it is.
ZERO_EVERY_LEVEL uint64_t frozenSum(uint64_t start, std::span<const float> values) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15; // 2^64 divided by the golden ratio
  uint64_t sum = 0, index = start * kGolden;
  for (float value : values) {
    sum += ((index >> 32) | 1) * std::bit_cast<uint32_t>(value);
    index += kGolden;
  }
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

#include "runtime/comm/ordered_sum.h"
#include "runtime/base/every_level.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace zero::runtime {
namespace {

constexpr uint64_t kBlock = 4096; // elements summed at a time: the running sums stay in the first-level cache

[[gnu::always_inline]] inline float widened(Bf16Bits value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

void begin(float *sum, const float *values, uint64_t count) { std::memcpy(sum, values, count * sizeof(float)); }
ZERO_EVERY_LEVEL void begin(float *sum, const Bf16Bits *values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) sum[i] = widened(values[i]);
}
ZERO_EVERY_LEVEL void addInto(float *sum, const float *values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) sum[i] += values[i];
}
ZERO_EVERY_LEVEL void addInto(float *sum, const Bf16Bits *values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) sum[i] += widened(values[i]);
}

template <typename T> void sumBlocks(const T *parts, uint64_t stride, int world, int own, const T *mine, float *dst, uint64_t count) {
  alignas(64) float sum[kBlock];
  for (uint64_t first = 0; first < count; first += kBlock) {
    uint64_t size = std::min(kBlock, count - first);
    for (int rank = 0; rank < world; ++rank) {
      const T *values = (rank == own ? mine : parts + static_cast<uint64_t>(rank) * stride) + first;
      rank == 0 ? begin(sum, values, size) : addInto(sum, values, size);
    }
    std::memcpy(dst + first, sum, size * sizeof(float));
  }
}

} // namespace

void orderedSum(const float *parts, uint64_t stride, int world, int own, const float *mine, float *dst, uint64_t count) {
  sumBlocks(parts, stride, world, own, mine, dst, count);
}
void orderedSum(const Bf16Bits *parts, uint64_t stride, int world, int own, const Bf16Bits *mine, float *dst, uint64_t count) {
  sumBlocks(parts, stride, world, own, mine, dst, count);
}

} // namespace zero::runtime

#include "runtime/comm/ordered_sum.h"
#include <algorithm>
#include <cstring>

// The thread sanitizer cannot start a program whose functions are picked by the loader.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ZERO_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ZERO_EACH_CPU
#endif

namespace zero::runtime {
namespace {

constexpr uint64_t kBlock = 4096; // elements summed at a time: the running sums stay in the first-level cache

ZERO_EACH_CPU void addInto(float *sum, const float *values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) sum[i] += values[i];
}

} // namespace

void orderedSum(const float *parts, uint64_t stride, int world, int own, const float *mine, float *dst, uint64_t count) {
  alignas(64) float sum[kBlock];
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t size = std::min(kBlock, count - begin);
    for (int rank = 0; rank < world; ++rank) {
      const float *values = (rank == own ? mine : parts + static_cast<uint64_t>(rank) * stride) + begin;
      if (rank == 0)
        std::memcpy(sum, values, size * sizeof(float));
      else
        addInto(sum, values, size);
    }
    std::memcpy(dst + begin, sum, size * sizeof(float));
  }
}

} // namespace zero::runtime

#include "runtime/device/cpu/bf16.h"
#include <bit>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ZERO_EVERY_LEVEL [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define ZERO_EVERY_LEVEL
#endif

namespace zero::runtime {

ZERO_EVERY_LEVEL void widen(int64_t rows, int64_t columns, const Bf16 *from, int64_t ldFrom, float *to, int64_t ldTo) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * ldTo + c] = std::bit_cast<float>(static_cast<uint32_t>(from[r * ldFrom + c]) << 16);
}

ZERO_EVERY_LEVEL void round(int64_t rows, int64_t columns, const float *from, int64_t ldFrom, Bf16 *to, int64_t ldTo) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      auto bits = std::bit_cast<uint32_t>(from[r * ldFrom + c]);
      bool isNan = (bits & 0x7fffffff) > 0x7f800000;
      to[r * ldTo + c] = static_cast<Bf16>((isNan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

} // namespace zero::runtime

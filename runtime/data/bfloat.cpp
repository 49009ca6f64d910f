// Whole pieces of parameters between f32 and bf16, which first values and checkpoints pass through.
#include "runtime/data/element.h"
#include "runtime/plan/every_level.h"
#include <bit>
#include <cstring>

namespace zero::runtime {

ZERO_EVERY_LEVEL void floatsToBfloats(const std::byte *from, std::byte *to, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) { // files need not be aligned
    uint32_t bits;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, noNumber = bits >> 16 | 0x40;
    auto result = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? noNumber : rounded);
    std::memcpy(to + i * sizeof result, &result, sizeof result);
  }
}

ZERO_EVERY_LEVEL void bfloatsToFloats(const std::byte *from, std::byte *to, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, from + i * sizeof half, sizeof half);
    uint32_t bits = uint32_t(half) << 16;
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
}

} // namespace zero::runtime

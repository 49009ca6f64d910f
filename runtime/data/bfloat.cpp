// Between f32 and bf16: single numbers, and whole pieces of parameters, which first values and checkpoints pass through.
#include "runtime/base/every_level.h"
#include "runtime/data/element.h"
#include <bit>
#include <cstring>

namespace zero::runtime {

uint16_t floatToBfloat(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, noNumber = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? noNumber : rounded);
}

ZERO_EVERY_LEVEL void floatsToBfloats(const std::byte *from, std::byte *to, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) { // files need not be aligned
    float value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    uint16_t half = floatToBfloat(value);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

ZERO_EVERY_LEVEL void bfloatsToFloats(const std::byte *from, std::byte *to, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, from + i * sizeof half, sizeof half);
    float value = bfloatToFloat(half);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

} // namespace zero::runtime

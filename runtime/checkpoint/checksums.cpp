#include "runtime/checkpoint/checksums.h"
#include <array>
#include <cstddef>
#include <cstring>

namespace zero::runtime {
namespace {

constexpr std::array<uint32_t, 256> makeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0); // the polynomial, lowest bit first
    table[byte] = sum;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = makeTable();

uint32_t byBytes(uint32_t sum, const std::byte *at, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) sum = sum >> 8 ^ kTable[(sum ^ static_cast<uint32_t>(at[i])) & 255];
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t byWords(uint32_t sum, const std::byte *at, uint64_t words) {
  uint64_t wide = sum;
  for (uint64_t i = 0; i < words; ++i) {
    uint64_t word;
    std::memcpy(&word, at + 8 * i, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return static_cast<uint32_t>(wide);
}
#endif

} // namespace

uint32_t checksum(const void *data, uint64_t bytes) {
  auto *at = static_cast<const std::byte *>(data);
  uint32_t sum = 0xffffffff;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) {
    sum = byWords(sum, at, bytes / 8);
    at += bytes / 8 * 8, bytes %= 8;
  }
#endif
  return ~byBytes(sum, at, bytes);
}

} // namespace zero::runtime

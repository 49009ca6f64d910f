// Damage that checksums do not find: a plan file that was changed, with its checksums made right again.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <zlib.h>

namespace zero::test {

// Those of the first segments that lie in the file, then that of header and table (runtime/plan/container.h has the layout).
inline std::string resealed(std::string file) {
  uint32_t segments = 0;
  if (file.size() < 4096) return file;
  std::memcpy(&segments, file.data() + 12, 4);
  auto crc = [&](uint64_t from, uint64_t size) {
    return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef *>(file.data() + from), static_cast<uInt>(size)));
  };
  auto put = [&](uint64_t at, uint32_t value) { std::memcpy(file.data() + at, &value, 4); };
  uint64_t at = 16;
  for (; segments > 0 && at + 32 + 4 <= 4096; --segments, at += 32) {
    uint64_t place[2]; // offset, size
    std::memcpy(place, file.data() + at + 8, sizeof place);
    if (place[0] >= 4096 && place[0] <= file.size() && place[1] <= file.size() - place[0]) put(at + 4, crc(place[0], place[1]));
  }
  put(at, crc(0, at));
  return file;
}

} // namespace zero::test

// What programs that time the disk have in common.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace zero::bench {

// FOLDER[,FOLDER]
inline std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t at = 0, end; at <= text.size(); at = end + 1) {
    end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
  }
  return parts;
}

// No disk can make less of it than it is.
inline void fillWithNoise(std::span<std::byte> bytes) {
  uint64_t state = 1;
  for (uint64_t at = 0; at + 8 <= bytes.size(); at += 8) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(bytes.data() + at, &state, 8);
  }
}

} // namespace zero::bench

// What the system says of memory, in files of lines.
#pragma once
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace zero::runtime {

// The value of `key` in lines of `key value`, as in meminfo, status and memory.stat; 0 if it is not there.
inline uint64_t valueOf(const std::string &path, const std::string &key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (words >> name && name == key && words >> value) return value;
  }
  return 0;
}

} // namespace zero::runtime

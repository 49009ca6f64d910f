// The functions of NVIDIA's libraries that zerorun calls.
#pragma once
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace zero::test {

// What the lists in these files of runtime/device/cuda name: the second argument of each find().
inline std::vector<std::string> functionsOf(const std::vector<std::string> &files) {
  std::vector<std::string> names;
  for (const std::string &file : files) {
    std::ifstream source(SOURCES "/" + file);
    std::stringstream text;
    text << source.rdbuf();
    std::string all = text.str();
    std::regex found("library\\.find\\(\\w+, \"(\\w+)\"\\)");
    for (std::sregex_iterator it(all.begin(), all.end(), found), end; it != end; ++it) names.push_back((*it)[1]);
  }
  return names;
}

} // namespace zero::test

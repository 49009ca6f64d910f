#include "test/gpu/fake/ptx.h"
#include <cstring>
#include <regex>
#include <sstream>

namespace zero::fake {

bool isPtx(const std::string &text) { return std::regex_search(text, std::regex("(^|\n)\\s*\\.version\\s")); }

bool hasKernel(const std::string &text, const std::string &symbol) {
  return std::regex_search(text, std::regex("\\.visible\\s+\\.entry\\s+" + symbol + "\\s*\\("));
}

std::optional<std::vector<std::byte>> arrayOf(const std::string &text, const std::string &symbol) {
  std::smatch found;
  if (!std::regex_search(text, found,
                         std::regex("\\.global[^;]*\\.[bsu](8|16|32|64)\\s+" + symbol + "\\[([0-9]+)\\]\\s*=\\s*\\{([^}]*)\\}")))
    return std::nullopt;
  size_t width = std::stoul(found[1]) / 8;
  std::vector<std::byte> bytes(width * std::stoul(found[2]));
  std::istringstream values(found[3]);
  size_t at = 0;
  for (std::string value; std::getline(values, value, ',') && at + width <= bytes.size(); at += width) {
    uint64_t number = std::stoull(value, nullptr, 0);
    std::memcpy(&bytes[at], &number, width); // little-endian
  }
  return bytes;
}

} // namespace zero::fake

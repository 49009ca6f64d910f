#include "test/gpu/fake/ptx.h"
#include <cstring>
#include <regex>
#include <sstream>
#include <vector>

namespace zero::fake {

bool isPtx(const std::string &text) { return std::regex_search(text, std::regex("(^|\n)\\s*\\.version\\s")); }

// The groups of the expression in the first statement it is found in that has `name` and ends with `end`: modules are long, and expressions
// slow.
static std::vector<std::string> partsOf(const std::string &text, const std::string &name, char end, const std::string &expression) {
  std::regex form(expression);
  std::smatch found;
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    size_t begin = text.find_last_of(";}", at) + 1; // 0 where there is none
    std::string statement = text.substr(begin, text.find(end, at) + 1 - begin);
    if (std::regex_search(statement, found, form)) return {found.begin(), found.end()};
  }
  return {};
}

bool hasKernel(const std::string &text, const std::string &symbol) {
  return !partsOf(text, symbol + "(", '(', "\\.visible\\s+\\.entry\\s+" + symbol + "\\(").empty();
}

std::optional<std::vector<std::byte>> arrayOf(const std::string &text, const std::string &symbol) {
  std::vector<std::string> found =
      partsOf(text, symbol + "[", '}', "\\.global[^;]*\\.[bsu](8|16|32|64)\\s+" + symbol + "\\[([0-9]+)\\]\\s*=\\s*\\{([^}]*)\\}");
  if (found.empty()) return std::nullopt;
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

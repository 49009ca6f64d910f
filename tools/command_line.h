// What the command lines share: numbers that are checked to their last character, and usage errors in one sentence.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace zero {

// A whole number in [low, high]. CLI11's own checks let numbers beyond 64 bits pass as the largest.
inline auto wholeNumber(uint64_t low, uint64_t high = UINT64_MAX) {
  return [low, high](const std::string &text) -> std::string {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return "";
    std::string range = high == UINT64_MAX ? std::to_string(low) + " on" : std::to_string(low) + " to " + std::to_string(high);
    return "wants a whole number from " + range + ", not '" + text + "'";
  };
}

inline std::string realNumber(const std::string &text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? "" : "wants a number, not '" + text + "'";
}

// 0 after --help; otherwise prints `program: sentence` and returns 1.
inline int usageError(const CLI::App &app, const CLI::ParseError &error, const std::string &program) {
  if (error.get_exit_code() == 0) return app.exit(error);
  std::string sentence = error.what();
  for (char &c : sentence)
    if (c == '\n') c = ' ';
  std::cerr << program << ": " << sentence << " (--help lists the flags)\n";
  return 1;
}

} // namespace zero

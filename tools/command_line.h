// What the command lines share: numbers that are checked to their last character, and usage errors in one sentence.
#pragma once
#include "runtime/process/streams.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zero {

// A whole number in [low, high], without zeros in front. CLI11's own checks let numbers beyond 64 bits pass as the largest.
inline auto wholeNumber(uint64_t low, uint64_t high = UINT64_MAX) {
  return [low, high](const std::string &text) -> std::string {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool octal = text.size() > 1 && text[0] == '0'; // to CLI11
    if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high && !octal) return "";
    std::string range = high == UINT64_MAX ? std::to_string(low) + " on" : std::to_string(low) + " to " + std::to_string(high);
    return "wants a whole number from " + range + (octal ? " without zeros in front" : "") + ", not '" + text + "'";
  };
}

// One of these words: oneOf({"adamw", "sgd"}).
inline auto oneOf(std::vector<std::string> words) {
  return [words](const std::string &text) -> std::string {
    std::string list;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == text) return "";
      list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    }
    return "wants " + list + ", not '" + text + "'";
  };
}

// The whole text as a number; none if it is no number that a double holds.
inline std::optional<double> toReal(const std::string &text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

inline std::string realNumber(const std::string &text) { return toReal(text) ? "" : "wants a number, not '" + text + "'"; }

// A flag that may be given several times, with one value each time.
inline CLI::Option *addList(CLI::App &app, const char *flag, std::vector<std::string> &values, const char *help) {
  return app.add_option(flag, values, help)->expected(1)->allow_extra_args(false)->take_all();
}

// Letters to add, drop or change to make one word of the other.
inline size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row[b.size()];
}

// A flag whose value is empty, or the next flag: `--sign "$KEY"` and `--metrics $FILE --shuffle` of variables that are not set would leave
// out what was asked for without a word. Nor is a value longer than the library for regular expressions has room on its stack for.
inline void requireValues(const CLI::App &app) {
  constexpr size_t kLongest = 16384;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &value : option->count() > 0 ? option->results() : std::vector<std::string>()) {
      if (value.empty()) throw CLI::ParseError(option->get_name() + " is given nothing", CLI::ExitCodes::ArgumentMismatch);
      if (value.size() > kLongest)
        throw CLI::ParseError(option->get_name() + " is given " + std::to_string(value.size()) + " bytes, of which it takes " +
                                  std::to_string(kLongest),
                              CLI::ExitCodes::ArgumentMismatch);
      if (value.size() > 1 && value[0] == '-' && app.get_option_no_throw(value))
        throw CLI::ParseError(option->get_name() + " wants a value, and " + value + " follows it, which is a flag",
                              CLI::ExitCodes::ArgumentMismatch);
    }
}

// Parses; an argument that means nothing is refused with the flag that was probably meant.
inline void parse(CLI::App &app, int argc, char **argv) {
  app.allow_extras();
  app.parse(argc, argv);
  requireValues(app);
  std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  auto flag = std::find_if(extras.begin(), extras.end(), [](const std::string &e) { return e.size() > 1 && e[0] == '-'; });
  if (flag == extras.end()) throw CLI::ParseError("'" + extras[0] + "' is one argument too many", CLI::ExitCodes::ExtrasError);
  std::string name = flag->substr(0, flag->find('=')), nearest;
  size_t distance = name.size() / 3 + 1;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &known : option->get_lnames())
      if (size_t d = editDistance(name, "--" + known); d < distance) distance = d, nearest = "--" + known;
  throw CLI::ParseError("there is no flag '" + name + "'" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"),
                        CLI::ExitCodes::ExtrasError);
}

// `program: sentence`, on one line.
inline std::string usageSentence(const CLI::ParseError &error, const std::string &program) {
  std::string sentence = error.what();
  for (char &c : sentence)
    if (c == '\n') c = ' ';
  return program + ": " + sentence + " (--help lists the flags)";
}

// 0 after --help; otherwise prints the sentence and returns 1.
inline int usageError(const CLI::App &app, const CLI::ParseError &error, const std::string &program) {
  if (error.get_exit_code() == 0) return app.exit(error);
  runtime::complain(usageSentence(error, program));
  return 1;
}

} // namespace zero

#include "runtime/train/agreement.h"
#include "runtime/checkpoint/checksums.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

namespace zero::runtime {
namespace {

// Of a few bytes from each rank, all of them.
std::vector<std::string> everyones(Communicator &communicator, const std::string &mine) {
  auto world = static_cast<size_t>(communicator.world());
  std::vector<uint64_t> sizes(world);
  uint64_t size = mine.size();
  communicator.allGather(&size, sizes.data(), sizeof size);
  uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::string own = mine + std::string(longest - size, ' '), all(longest * world, ' ');
  communicator.allGather(own.data(), all.data(), longest);
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < world; ++rank) texts.push_back(all.substr(rank * longest, sizes[rank]));
  return texts;
}

bool allHave(Communicator &communicator, const std::string &mine) {
  using Digest = std::array<uint64_t, 2>;
  std::vector<Digest> all(static_cast<size_t>(communicator.world()));
  Digest own{mine.size(), checksum(mine.data(), mine.size())};
  communicator.allGather(&own, all.data(), sizeof own);
  return std::all_of(all.begin(), all.end(), [&](const Digest &digest) { return digest == own; });
}

// "rank 3", "ranks 0, 2 to 5, 9"
std::string nameRanks(const std::vector<size_t> &ranks) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last < i + 2) last = i; // two in a row are named one by one
    parts.push_back(last == i ? fmt::format("{}", ranks[i]) : fmt::format("{} to {}", ranks[i], ranks[last]));
    i = last + 1;
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(parts, ", "));
}

// "0.1 on ranks 0, 1, but 0.2 on rank 2" of each rank's value, in the order of the ranks.
std::string nameValues(const std::vector<std::string> &values) {
  constexpr size_t kMost = 4;
  std::vector<std::pair<std::string, std::vector<size_t>>> groups;
  for (size_t rank = 0; rank < values.size(); ++rank) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto &group) { return group.first == values[rank]; });
    if (same == groups.end()) same = groups.insert(groups.end(), {values[rank], {}});
    same->second.push_back(rank);
  }
  std::vector<std::string> parts;
  size_t unnamed = values.size();
  for (const auto &[value, ranks] : groups) {
    if (parts.size() == kMost) break;
    parts.push_back(fmt::format("{} on {}", value.empty() ? "not given" : value, nameRanks(ranks)));
    unnamed -= ranks.size();
  }
  if (unnamed) parts.push_back(fmt::format("still another on {} more", unnamed));
  return fmt::format("{}", fmt::join(parts, ", but "));
}

// Names and values, each after a zero. All ranks have the same names, unless they run different programs.
std::string textOf(const Settings &settings) {
  std::string text;
  for (const auto &[name, value] : settings) text += name + '\0' + value + '\0';
  return text;
}

Settings settingsOf(const std::string &text) {
  Settings settings;
  std::vector<std::string> words;
  for (size_t at = 0, end; (end = text.find('\0', at)) != std::string::npos; at = end + 1) words.push_back(text.substr(at, end - at));
  for (size_t i = 0; i + 1 < words.size(); i += 2) settings.emplace_back(words[i], words[i + 1]);
  return settings;
}

std::string valueIn(const Settings &settings, const std::string &name) {
  auto at = std::find_if(settings.begin(), settings.end(), [&](const auto &setting) { return setting.first == name; });
  return at == settings.end() ? "unknown" : at->second;
}

// The sentence about settings that are not the same everywhere.
std::string difference(const std::vector<Settings> &all) {
  std::vector<std::string> names;
  for (const Settings &settings : all) // those of all, because each rank may have files of its own
    for (const auto &[name, value] : settings)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  std::vector<std::string> others;
  std::string sentence;
  for (const std::string &name : names) {
    std::vector<std::string> values;
    for (const Settings &settings : all) values.push_back(valueIn(settings, name));
    if (std::all_of(values.begin(), values.end(), [&](const std::string &value) { return value == values[0]; })) continue;
    if (sentence.empty())
      sentence = fmt::format("{} is {}", name, nameValues(values));
    else
      others.push_back(name);
  }
  if (!others.empty()) sentence += fmt::format("; {} {} too", fmt::join(others, ", "), others.size() == 1 ? "differs" : "differ");
  return sentence + "; all ranks of a run must be given the same";
}

} // namespace

void requireSame(Communicator &communicator, const Settings &mine) {
  std::string text = textOf(mine);
  if (allHave(communicator, text)) return;
  std::vector<Settings> all;
  for (const std::string &each : everyones(communicator, text)) all.push_back(settingsOf(each));
  if (communicator.rank() == 0) throw CollectiveError(difference(all));
  throw ReportedElsewhere();
}

uint8_t largest(Communicator &communicator, uint8_t mine) {
  if (communicator.world() == 1) return mine;
  std::vector<uint8_t> all = everyones(communicator, mine);
  return *std::max_element(all.begin(), all.end());
}

} // namespace zero::runtime

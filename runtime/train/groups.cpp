#include "runtime/train/groups.h"
#include "runtime/base/error.h"
#include "runtime/plan/pieces.h"
#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <regex>

namespace zero::runtime {
namespace {

std::vector<std::string> namesOf(const plan::Parameter &parameter) {
  std::vector<std::string> names{parameter.name()};
  for (const plan::Alias &alias : parameter.aliases()) names.push_back(alias.name());
  return names;
}

// Letters, digits and the signs of names: what of an expression can stand in a name as it is.
std::string plainText(const std::string &expression) {
  std::string text;
  for (char c : expression)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Length of the longest text that both contain.
size_t common(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1), last(b.size() + 1);
  size_t best = 0;
  for (char c : a) {
    row.swap(last);
    for (size_t j = 0; j < b.size(); ++j) best = std::max(best, row[j + 1] = c == b[j] ? last[j] + 1 : 0);
  }
  return best;
}

// The three names that share most with an expression that was found in none.
std::vector<std::string> nearest(const std::string &expression, const std::vector<std::string> &names) {
  std::vector<std::pair<size_t, std::string>> found;
  std::string text = plainText(expression);
  for (const std::string &name : names) found.emplace_back(common(text, plainText(name)), name);
  std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  std::vector<std::string> best;
  for (size_t i = 0; i < std::min<size_t>(3, found.size()); ++i) best.push_back(found[i].second);
  return best;
}

// The trained parameters of a plan, by index, with their names.
class Trained {
public:
  explicit Trained(const plan::Plan &plan) {
    for (int i = 0; i < plan.parameters_size(); ++i)
      if (plan::isTrainable(plan, plan.parameters(i))) parameters.emplace_back(i, namesOf(plan.parameters(i)));
  }

  // Those in one of whose names the expression is found; at least one.
  std::vector<int> matching(const char *flag, const std::string &expression) const {
    std::vector<int> found;
    try {
      std::regex regex(expression, std::regex::ECMAScript | std::regex::optimize);
      for (const auto &[index, names] : parameters)
        if (std::any_of(names.begin(), names.end(), [&](const std::string &name) { return std::regex_search(name, regex); }))
          found.push_back(index);
    } catch (const std::regex_error &error) {
      throw Error(fmt::format("{} '{}' is no regular expression: {}", flag, expression, error.what()));
    }
    if (!found.empty()) return found;
    std::vector<std::string> all;
    for (const auto &[index, names] : parameters) all.insert(all.end(), names.begin(), names.end());
    throw Error(fmt::format("{} '{}' is found in the name of no trained parameter; near ones are '{}'", flag, expression,
                            fmt::join(nearest(expression, all), "', '")));
  }

  std::vector<std::pair<int, std::vector<std::string>>> parameters;
};

std::vector<std::string> reportOf(const Trained &trained, const std::vector<HyperGroup> &groups, const TrainOptions &options,
                                  const Hyper &hyper) {
  size_t decays = 0;
  std::map<double, size_t> scaled;
  for (const auto &[index, names] : trained.parameters) {
    decays += groups[static_cast<size_t>(index)].decays;
    ++scaled[groups[static_cast<size_t>(index)].lrScale];
  }
  auto tensors = [](size_t n) { return fmt::format("{} tensor{}", n, n == 1 ? "" : "s"); };
  std::vector<std::string> lines;
  if (!options.noDecay.empty())
    lines.push_back(fmt::format("weight decay {} for {}, none for {} (--no-decay)", hyper.weightDecay, tensors(decays),
                                trained.parameters.size() - decays));
  if (options.lrScales.empty()) return lines;
  std::vector<std::string> parts;
  for (auto [scale, count] : scaled)
    if (scale != 1) parts.push_back(fmt::format("x {} for {}", scale, tensors(count)));
  if (scaled.contains(1)) parts.push_back(fmt::format("as it is for {}", tensors(scaled[1])));
  lines.push_back(fmt::format("learning rate {} (--lr-scale)", fmt::join(parts, ", ")));
  return lines;
}

} // namespace

HyperGroups resolveGroups(const plan::Plan &plan, const TrainOptions &options, const Hyper &hyper) {
  HyperGroups result;
  if (options.noDecay.empty() && options.lrScales.empty()) return result;
  Trained trained(plan);
  std::vector<HyperGroup> groups(static_cast<size_t>(plan.parameters_size()));
  for (const std::string &expression : options.noDecay)
    for (int index : trained.matching("--no-decay", expression)) groups[static_cast<size_t>(index)].decays = false;
  for (const auto &[expression, scale] : options.lrScales) {
    if (!(scale >= 0 && std::isfinite(scale)))
      throw Error(fmt::format("--lr-scale '{}={}' must be finite, and not negative", expression, scale));
    for (int index : trained.matching("--lr-scale", expression)) groups[static_cast<size_t>(index)].lrScale = scale;
  }
  for (const HyperGroup &group : groups) {
    auto at = std::find(result.list.begin(), result.list.end(), group);
    result.of.push_back(static_cast<uint32_t>(at - result.list.begin()));
    if (at == result.list.end()) result.list.push_back(group);
  }
  result.report = reportOf(trained, groups, options, hyper);
  return result;
}

std::array<float, 16> hyperInput(const Hyper &hyper, const HyperGroup &group, double lr, uint64_t update) {
  Hyper own = hyper;
  if (!group.decays) own.weightDecay = 0;
  return hyperInput(own, lr * group.lrScale, update);
}

} // namespace zero::runtime

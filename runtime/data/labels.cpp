#include "runtime/data/labels.h"
#include "runtime/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/data/element.h"
#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace zero::runtime {
namespace {

constexpr uint64_t kCompared = 4; // samples

bool isIntegers(const plan::Input &input) { return input.dtype() == plan::I64 || input.dtype() == plan::I32; }

std::vector<int64_t> integers(const plan::Plan &plan, const Dataset &data, int input, uint64_t sample) {
  Element type = elementOf(plan.inputs(input).dtype());
  uint64_t elements = sampleElements(plan.inputs(input));
  std::vector<std::byte> bytes(elements * sizeOf(type));
  data.read(input, sample, bytes);
  std::vector<int64_t> values;
  for (uint64_t i = 0; i < elements; ++i) values.push_back(integerAt(type, bytes.data(), i));
  return values;
}

// Whether each label that counts is the token `ahead` places later. Labels that are all the same prove nothing.
bool follows(const std::vector<int64_t> &labels, const std::vector<int64_t> &tokens, size_t row, size_t ahead, int64_t ignored) {
  std::optional<int64_t> first;
  bool differ = false;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == ignored || i % row + ahead >= row) continue;
    if (labels[i] != tokens[i + ahead]) return false;
    if (!first) first = labels[i];
    differ |= labels[i] != *first;
  }
  return differ;
}

} // namespace

std::optional<LabelRule> labelRule(const std::string &text) {
  if (text == "same") return LabelRule{};
  if (text == "shifted") return LabelRule{LabelRule::Shifted, {}};
  if (text.starts_with("next:") && text.size() > 5) return LabelRule{LabelRule::Next, text.substr(5)};
  return std::nullopt;
}

std::string textOf(const LabelRule &rule) {
  return rule.kind == LabelRule::Same ? "same" : rule.kind == LabelRule::Shifted ? "shifted" : "next:" + rule.tokens;
}

bool hasPlaces(const plan::Input &labels) {
  return isIntegers(labels) && labels.shape_size() >= 2 && labels.shape(labels.shape_size() - 1) >= 2;
}

std::string labelWarning(const plan::Plan &plan, const Dataset &data, const LabelRule &rule) try {
  uint64_t samples = std::min(kCompared, data.samples());
  for (int l = 0; l < plan.inputs_size(); ++l) {
    const plan::Input &labels = plan.inputs(l);
    std::optional<int64_t> ignored = ignoredLabel(plan, labels);
    if (!ignored || labels.micro_step() > 0 || !hasPlaces(labels)) continue;
    auto row = static_cast<size_t>(labels.shape(labels.shape_size() - 1));
    for (int t = 0; t < plan.inputs_size(); ++t) {
      const plan::Input &tokens = plan.inputs(t);
      if (tokens.role() != plan::Input::DATA || tokens.micro_step() > 0 || !isIntegers(tokens) ||
          !std::equal(tokens.shape().begin(), tokens.shape().end(), labels.shape().begin(), labels.shape().end()))
        continue;
      auto all = [&](size_t ahead) {
        for (uint64_t s = 0; s < samples; ++s)
          if (!follows(integers(plan, data, l, s), integers(plan, data, t, s), row, ahead, *ignored)) return false;
        return samples > 0;
      };
      std::string where = fmt::format("the '{}' of the first {} in '{}'", labels.name(),
                                      samples == 1 ? "sample" : fmt::format("{} samples", samples), data.path());
      if (all(0))
        return fmt::format(
            "{} are '{}' place by place, so the model learns to copy its input; a causal model needs the next tokens: --labels shifted",
            where, tokens.name());
      if (rule.kind == LabelRule::Shifted && all(2))
        return fmt::format("with --labels shifted, {} are '{}' two places later: the file's are shifted already, so leave --labels out",
                           where, tokens.name());
    }
  }
  return "";
} catch (const Error &) {
  return ""; // a value that the model does not know: the step that reads it says so, if one does
}

} // namespace zero::runtime

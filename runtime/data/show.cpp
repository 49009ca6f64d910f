#include "runtime/data/show.h"
#include "runtime/data/element.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace zero::runtime {
namespace {

constexpr uint64_t kValues = 12;          // of each input
constexpr uint64_t kText = 160;           // bytes
constexpr uint64_t kFirst = 6, kLast = 2; // places of a sequence

// One input of the sample.
struct Shown {
  const plan::Input *input;
  Element type;
  uint64_t elements;
  std::vector<std::byte> bytes;

  std::string value(uint64_t i) const {
    if (!isFloat(type)) return fmt::to_string(integerAt(type, bytes.data(), i));
    float number = 0;
    convert(type, bytes.data() + i * sizeOf(type), plan::F32, reinterpret_cast<std::byte *>(&number), 1);
    return fmt::format("{:.4g}", number);
  }
  std::string values() const {
    std::vector<std::string> list;
    for (uint64_t i = 0; i < std::min(elements, kValues); ++i) list.push_back(value(i));
    if (elements > kValues) list.push_back("…");
    return fmt::format("{}", fmt::join(list, " "));
  }
  bool isShared() const { return input->role() == plan::Input::SHARED; }
  std::string shape() const {
    int first = isShared() ? 0 : std::min(1, input->shape_size());
    return fmt::format("[{}]", fmt::join(input->shape().begin() + first, input->shape().end(), " x "));
  }
  bool sameShape(const Shown &other) const {
    return std::equal(input->shape().begin(), input->shape().end(), other.input->shape().begin(), other.input->shape().end());
  }
};

std::vector<Shown> read(const plan::Plan &plan, const Dataset &data, uint64_t sample) {
  std::vector<Shown> all;
  for (int i = 0; i < plan.inputs_size(); ++i) {
    const plan::Input &input = plan.inputs(i);
    if (input.role() != plan::Input::DATA && input.role() != plan::Input::LABELS && input.role() != plan::Input::SHARED) continue;
    if (input.micro_step() > 0) continue; // takes other samples of the same tensor
    Shown shown{&input, elementOf(input.dtype()), sampleElements(input), {}};
    if (shown.isShared() && input.shape_size() > 0) shown.elements *= static_cast<uint64_t>(input.shape(0));
    shown.bytes.resize(shown.elements * sizeOf(shown.type));
    data.read(i, shown.isShared() ? 0 : sample, shown.bytes);
    all.push_back(std::move(shown));
  }
  return all;
}

std::string textOf(const Shown &tokens) {
  std::string text;
  for (uint64_t i = 0; i < std::min(tokens.elements, kText); ++i) text += static_cast<char>(integerAt(tokens.type, tokens.bytes.data(), i));
  std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); // escapes what is no text
  return quoted + (tokens.elements > kText ? " …" : "");
}

// The places of the first sequence: what the model reads there, and what it is to predict.
std::string places(const std::vector<Shown> &all, const Shown &labels, int64_t ignored) {
  std::vector<const Shown *> columns;
  for (const Shown &shown : all)
    if (&shown != &labels && shown.input->role() == plan::Input::DATA && !isFloat(shown.type) && shown.sameShape(labels))
      columns.push_back(&shown);
  columns.push_back(&labels);
  std::string text = "\n  place";
  for (const Shown *column : columns) text += fmt::format("  {:>10}", column->input->name());
  auto row = static_cast<uint64_t>(labels.input->shape(labels.input->shape_size() - 1));
  for (uint64_t i = 0; i < row; ++i) {
    if (i == kFirst && row > kFirst + kLast) text += "\n      …", i = row - kLast;
    text += fmt::format("\n  {:>5}", i);
    for (const Shown *column : columns)
      text += fmt::format("  {:>{}}", column->value(i), std::max<size_t>(10, column->input->name().size()));
    if (integerAt(labels.type, labels.bytes.data(), i) == ignored) text += " (does not count)";
  }
  return text;
}

} // namespace

std::string describeSample(const plan::Plan &plan, const Dataset &data, uint64_t sample) {
  std::vector<Shown> all = read(plan, data, sample);
  size_t name = 0, shape = 0;
  for (const Shown &shown : all) name = std::max(name, shown.input->name().size()), shape = std::max(shape, shown.shape().size());
  std::string text = fmt::format("sample {} of '{}':", sample, data.path());
  for (const Shown &shown : all) {
    text += fmt::format("\n  {:{}}  {:4} {:{}}  {}", shown.input->name(), name, nameOf(shown.type), shown.shape(), shape, shown.values());
    if (shown.isShared()) text += " (the same for every sample)";
    if (data.path().ends_with(".txt") && shown.input->role() == plan::Input::DATA)
      text += fmt::format("\n  {:{}}  {}", "", name, textOf(shown));
  }
  for (const Shown &shown : all)
    if (std::optional<int64_t> ignored = ignoredLabel(plan, *shown.input); ignored && hasPlaces(*shown.input))
      text += places(all, shown, *ignored);
  return text;
}

} // namespace zero::runtime

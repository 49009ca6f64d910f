#include "runtime/data/dataset.h"
#include "runtime/base/error.h"
#include "runtime/data/element.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/tensor_file.h"
#include "runtime/data/token_file.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace zero::runtime {

uint64_t sampleElements(const plan::Input &input) {
  uint64_t elements = 1;
  for (int i = 1; i < input.shape_size(); ++i) elements *= static_cast<uint64_t>(input.shape(i));
  return elements;
}

// Of those that take samples of the same tensor, each for a micro-step of its own.
static bool isFirst(const plan::Input &input) { return input.micro_step() == 0; }

int labelsOf(const plan::Plan &plan, const plan::Loss &loss) {
  for (int i = 0; i < plan.inputs_size(); ++i)
    if (isFirst(plan.inputs(i)) && plan.inputs(i).role() == plan::Input::LABELS && plan.inputs(i).name() == loss.labels()) return i;
  return -1;
}

std::optional<int64_t> ignoredLabel(const plan::Plan &plan, const plan::Input &input) {
  if (input.role() == plan::Input::LABELS)
    for (const plan::Loss &loss : plan.losses())
      if (loss.kind() == plan::CROSS_ENTROPY && loss.labels() == input.name()) return loss.ignore_index();
  return std::nullopt;
}

std::vector<NumberRange> rangesOf(const plan::Plan &plan, const plan::Input &input) {
  std::vector<NumberRange> ranges;
  bool labels = input.role() == plan::Input::LABELS;
  if (input.limit() > 0) ranges.push_back({labels ? 0 : -input.limit(), input.limit(), ignoredLabel(plan, input)});
  if (input.classes() > 0) ranges.push_back({0, input.classes(), input.has_ignored() ? std::optional(input.ignored()) : std::nullopt});
  return ranges;
}

uint64_t sampleTokens(const plan::Plan &plan) {
  uint64_t tokens = 0;
  for (const plan::Input &input : plan.inputs())
    if (input.role() == plan::Input::DATA && input.limit() > 0 && !isFloat(elementOf(input.dtype())))
      tokens = std::max(tokens, sampleElements(input));
  return tokens;
}

namespace {

bool isShared(const plan::Input &input) { return input.role() == plan::Input::SHARED; }

bool isFed(const plan::Input &input) { return input.role() == plan::Input::DATA || input.role() == plan::Input::LABELS || isShared(input); }

void checkRanges(const plan::Plan &plan, const plan::Input &input, const std::string &tensor, Element type, const std::byte *data,
                 uint64_t elements, const std::string &path, uint64_t sample) {
  for (const NumberRange &range : rangesOf(plan, input))
    for (uint64_t i = 0; i < elements; ++i)
      if (int64_t value = integerAt(type, data, i); !range.has(value))
        throw Error(fmt::format("'{}': {}'{}' has the value {} at position {}, but the model knows {} of them, 0 to {}{}", path,
                                isShared(input) ? "" : fmt::format("sample {} of ", sample), tensor, value, i, range.end, range.end - 1,
                                range.ignored ? fmt::format(" (and {} for ignored labels)", *range.ignored) : ""));
}

// Whether an input's labels are those of the next place, and the tensor that an input is read from.
bool isShifted(const plan::Plan &plan, const plan::Input &input, const LabelRule &rule) {
  return rule.kind != LabelRule::Same && hasPlaces(input) && ignoredLabel(plan, input).has_value();
}

const std::string &tensorOf(const plan::Plan &plan, const plan::Input &input, const LabelRule &rule) {
  return rule.kind == LabelRule::Next && isShifted(plan, input, rule) ? rule.tokens : input.name();
}

std::set<std::string> tensorsOf(const plan::Plan &plan, const LabelRule &rule) {
  std::set<std::string> names;
  for (const plan::Input &input : plan.inputs())
    if (isFed(input) && isFirst(input)) names.insert(tensorOf(plan, input, rule));
  return names;
}

class TensorDataset : public Dataset {
public:
  TensorDataset(const plan::Plan &plan, const std::string &path, const DataOptions &options)
      : plan(plan), file(openTensorFile(path, tensorsOf(plan, options.labels))), sources(static_cast<size_t>(plan.inputs_size())) {
    path_ = path;
    std::string first;
    bool shifts = false;
    for (int i = 0; i < plan.inputs_size(); ++i) {
      const plan::Input &input = plan.inputs(i);
      if (!isFed(input) || !isFirst(input)) continue;
      Source &source = sources[static_cast<size_t>(i)];
      if (isShifted(plan, input, options.labels)) {
        source.row = static_cast<uint64_t>(input.shape(input.shape_size() - 1));
        shifts = true;
      }
      source.tensor = bind(input, tensorOf(plan, input, options.labels));
      if (isShared(input)) continue;
      uint64_t samples = source.tensor->shape[0];
      if (!first.empty() && samples != samples_)
        throw Error(fmt::format("'{}': '{}' has {} samples but '{}' has {}", path, first, samples_, source.tensor->name, samples));
      if (first.empty()) first = source.tensor->name, samples_ = samples;
    }
    if (first.empty()) throw Error("the plan has no input that takes samples, so --data has nothing to feed");
    if (options.labels.kind != LabelRule::Same && !shifts)
      throw Error(fmt::format("--labels {} takes labels from the next place, but the plan's loss has no labels for places of a sequence; "
                              "leave it out",
                              textOf(options.labels)));
    refuseUnread(options.ignored);
  }

  void read(int index, uint64_t sample, std::span<std::byte> dst) const override {
    const plan::Input &input = plan.inputs(index);
    const auto &[tensor, row] = sources[static_cast<size_t>(index)];
    uint64_t size = sizeOf(input.dtype()), elements = dst.size() / size;
    const std::byte *src = tensor->bytes.data() + sample * elements * sizeOf(tensor->type);
    if (!isFloat(tensor->type)) checkRanges(plan, input, tensor->name, tensor->type, src, elements, path_, sample);
    try {
      if (!row) convert(tensor->type, src, input.dtype(), dst.data(), elements);
      for (uint64_t at = 0; row && at < elements; at += row) { // each row one place later; no label belongs to its last place
        convert(tensor->type, src + (at + 1) * sizeOf(tensor->type), input.dtype(), dst.data() + at * size, row - 1);
        int64_t none = *ignoredLabel(plan, input);
        convert(Element::I64, reinterpret_cast<const std::byte *>(&none), input.dtype(), dst.data() + (at + row - 1) * size, 1);
      }
    } catch (const Error &error) {
      throw Error(fmt::format("'{}': sample {} of '{}': {}", path_, sample, tensor->name, error.what()));
    }
  }

  bool mayRefuse(int index) const override {
    const plan::Input &input = plan.inputs(index);
    return !isFloat(sources[static_cast<size_t>(index)].tensor->type) && (input.limit() > 0 || !isFloat(elementOf(input.dtype())));
  }

  uint64_t countedLabels(int index, uint64_t sample) const override {
    const auto &[tensor, row] = sources[static_cast<size_t>(index)];
    std::optional<int64_t> ignored = ignoredLabel(plan, plan.inputs(index));
    uint64_t elements = sampleElements(plan.inputs(index)), counted = 0;
    const std::byte *src = tensor->bytes.data() + sample * elements * sizeOf(tensor->type);
    for (uint64_t e = 0; e < elements; ++e) counted += (row == 0 || e % row != 0) && integerAt(tensor->type, src, e) != ignored;
    return counted;
  }

  bool holds(const std::string &tensor) const override { return file.find(tensor); }

private:
  struct Source {
    const Tensor *tensor = nullptr;
    uint64_t row = 0; // places of a row whose labels are read one place later; 0: as they lie
  };

  // Inputs that the host makes itself are none of these.
  std::vector<std::string> readByThePlan() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < sources.size(); ++i)
      if (sources[i].tensor) names.push_back(sources[i].tensor->name);
    return names;
  }

  // A tensor that means something to a model of another export, such as a mask, would change the loss without a word.
  void refuseUnread(const std::vector<std::string> &ignored) const {
    std::vector<std::string> read = readByThePlan(), unread;
    auto has = [](const std::vector<std::string> &names, const std::string &name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const std::string &name : ignored)
      if (has(read, name))
        throw Error(fmt::format("--ignore-tensor '{}': the plan reads this tensor of '{}', so it cannot be ignored", name, path_));
    for (const Tensor &tensor : file.tensors)
      if (!has(read, tensor.name) && !has(ignored, tensor.name)) unread.push_back(tensor.name);
    if (unread.empty()) return;
    throw Error(fmt::format("'{}' holds '{}', which the plan does not read (it reads '{}'); compile a model that takes {}, or give "
                            "--ignore-tensor {} to train without",
                            path_, fmt::join(unread, "', '"), fmt::join(read, "', '"), unread.size() == 1 ? "it" : "them",
                            fmt::join(unread, " --ignore-tensor ")));
  }

  const Tensor *bind(const plan::Input &input, const std::string &name) const {
    const Tensor *tensor = file.find(name);
    if (!tensor)
      throw Error(fmt::format("'{}' has no tensor named '{}', which {}; it holds {}{}", file.path, name,
                              name == input.name() ? "the plan needs" : "--labels names", file.contents(),
                              input.role() == plan::Input::LABELS && hasPlaces(input) && name == input.name()
                                  ? "; --labels next:INPUT makes labels of the next tokens of an input"
                                  : ""));
    std::vector<uint64_t> want(input.shape().begin(), input.shape().end());
    bool fits = tensor->shape.size() == want.size();
    for (size_t i = isShared(input) ? 0 : 1; fits && i < want.size(); ++i) fits = tensor->shape[i] == want[i];
    if (!fits) {
      std::vector<std::string> expected;
      for (size_t i = 0; i < want.size(); ++i) expected.push_back(i == 0 && !isShared(input) ? "samples" : fmt::to_string(want[i]));
      throw Error(fmt::format("'{}': tensor '{}' has shape {}, but the plan needs [{}]{}; compile with other --bind sizes or cut the data",
                              file.path, name, shapeText(tensor->shape), fmt::join(expected, " x "),
                              isShared(input)
                                  ? ", once for all samples, since its first dimension is not the batch (what differs from sample to "
                                    "sample has the batch first, and the model may flatten it)"
                                  : ""));
    }
    if (std::string why = refusal(tensor->type, input.dtype()); !why.empty())
      throw Error(fmt::format("'{}': tensor '{}' is {}, but the plan needs {}: {}", file.path, name, nameOf(tensor->type),
                              nameOf(elementOf(input.dtype())), why));
    return tensor;
  }

  const plan::Plan &plan;
  TensorFile file;
  std::vector<Source> sources; // per plan input, without a tensor for those the host makes itself
};

} // namespace

std::unique_ptr<Dataset> openDataset(const plan::Plan &plan, const std::string &path, const DataOptions &options) {
  requireRegularFile(path);
  if (!path.ends_with(".bin") && !path.ends_with(".txt")) return std::make_unique<TensorDataset>(plan, path, options);
  if (options.labels.kind != LabelRule::Same)
    throw Error(fmt::format("'{}' is a stream of tokens, whose labels are the next tokens by themselves; leave out --labels {}", path,
                            textOf(options.labels)));
  return openTokenFile(plan, path);
}

} // namespace zero::runtime

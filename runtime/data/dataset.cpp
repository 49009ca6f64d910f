#include "runtime/data/dataset.h"
#include "runtime/data/element.h"
#include "runtime/data/tensor_file.h"
#include "runtime/data/token_file.h"
#include "runtime/plan/error.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace zero::runtime {

uint64_t sampleElements(const plan::Input &input) {
  uint64_t elements = 1;
  for (int i = 1; i < input.shape_size(); ++i) elements *= static_cast<uint64_t>(input.shape(i));
  return elements;
}

int labelsOf(const plan::Plan &plan, const plan::Loss &loss) {
  for (int i = 0; i < plan.inputs_size(); ++i)
    if (plan.inputs(i).role() == plan::Input::LABELS && plan.inputs(i).name() == loss.labels()) return i;
  return -1;
}

std::optional<int64_t> ignoredLabel(const plan::Plan &plan, const plan::Input &input) {
  if (input.role() == plan::Input::LABELS)
    for (const plan::Loss &loss : plan.losses())
      if (loss.kind() == plan::CROSS_ENTROPY && loss.labels() == input.name()) return loss.ignore_index();
  return std::nullopt;
}

namespace {

bool isShared(const plan::Input &input) { return input.role() == plan::Input::SHARED; }

bool isFed(const plan::Input &input) { return input.role() == plan::Input::DATA || input.role() == plan::Input::LABELS || isShared(input); }

void checkLimits(const plan::Plan &plan, const plan::Input &input, Element type, const std::byte *data, uint64_t elements,
                 const std::string &path, uint64_t sample) {
  if (input.limit() == 0) return;
  std::optional<int64_t> ignored = ignoredLabel(plan, input);
  int64_t low = input.role() == plan::Input::LABELS ? 0 : -input.limit();
  for (uint64_t i = 0; i < elements; ++i) {
    int64_t value = integerAt(type, data, i);
    if ((value >= low && value < input.limit()) || value == ignored) continue;
    throw Error(fmt::format("'{}': {}'{}' has the value {} at position {}, but the model knows {} of them, 0 to {}{}", path,
                            isShared(input) ? "" : fmt::format("sample {} of ", sample), input.name(), value, i, input.limit(),
                            input.limit() - 1, ignored ? fmt::format(" (and {} for ignored labels)", *ignored) : ""));
  }
}

class TensorDataset : public Dataset {
public:
  TensorDataset(const plan::Plan &plan, const std::string &path) : plan(plan), file(openTensorFile(path)), sources(plan.inputs_size()) {
    path_ = path;
    std::string first;
    for (int i = 0; i < plan.inputs_size(); ++i) {
      const plan::Input &input = plan.inputs(i);
      if (!isFed(input)) continue;
      sources[i] = bind(input);
      if (isShared(input)) continue;
      uint64_t samples = sources[i]->shape[0];
      if (!first.empty() && samples != samples_)
        throw Error(fmt::format("'{}': '{}' has {} samples but '{}' has {}", path, first, samples_, input.name(), samples));
      if (first.empty()) first = input.name(), samples_ = samples;
    }
    if (first.empty()) throw Error("the plan has no input that takes samples, so --data has nothing to feed");
  }

  void read(int index, uint64_t sample, std::span<std::byte> dst) const override {
    const plan::Input &input = plan.inputs(index);
    const Tensor &tensor = *sources[index];
    uint64_t elements = dst.size() / sizeOf(input.dtype());
    const std::byte *src = tensor.bytes.data() + sample * elements * sizeOf(tensor.type);
    if (!isFloat(tensor.type)) checkLimits(plan, input, tensor.type, src, elements, path_, sample);
    try {
      convert(tensor.type, src, input.dtype(), dst.data(), elements);
    } catch (const Error &error) {
      throw Error(fmt::format("'{}': sample {} of '{}': {}", path_, sample, input.name(), error.what()));
    }
  }

  uint64_t countedLabels(int index, uint64_t sample) const override {
    const plan::Input &input = plan.inputs(index);
    const Tensor &tensor = *sources[index];
    std::optional<int64_t> ignored = ignoredLabel(plan, input);
    uint64_t elements = sampleElements(input), counted = 0;
    const std::byte *src = tensor.bytes.data() + sample * elements * sizeOf(tensor.type);
    for (uint64_t e = 0; e < elements; ++e) counted += integerAt(tensor.type, src, e) != ignored;
    return counted;
  }

private:
  const Tensor *bind(const plan::Input &input) const {
    const Tensor *tensor = file.find(input.name());
    if (!tensor)
      throw Error(
          fmt::format("'{}' has no tensor named '{}', which the plan needs; it holds {}", file.path, input.name(), file.contents()));
    std::vector<uint64_t> want(input.shape().begin(), input.shape().end());
    bool fits = tensor->shape.size() == want.size();
    for (size_t i = isShared(input) ? 0 : 1; fits && i < want.size(); ++i) fits = tensor->shape[i] == want[i];
    if (!fits) {
      std::vector<std::string> expected;
      for (size_t i = 0; i < want.size(); ++i) expected.push_back(i == 0 && !isShared(input) ? "samples" : fmt::to_string(want[i]));
      throw Error(fmt::format("'{}': tensor '{}' has shape {}, but the plan needs [{}]{}; compile with other --bind sizes or cut the data",
                              file.path, input.name(), shapeText(tensor->shape), fmt::join(expected, " x "),
                              isShared(input) ? ", once for all samples" : ""));
    }
    if (std::string why = refusal(tensor->type, input.dtype()); !why.empty())
      throw Error(fmt::format("'{}': tensor '{}' is {}, but the plan needs {}: {}", file.path, input.name(), nameOf(tensor->type),
                              nameOf(elementOf(input.dtype())), why));
    return tensor;
  }

  const plan::Plan &plan;
  TensorFile file;
  std::vector<const Tensor *> sources; // per plan input, null for those the host makes itself
};

} // namespace

std::unique_ptr<Dataset> openDataset(const plan::Plan &plan, const std::string &path) {
  if (path.ends_with(".bin") || path.ends_with(".txt")) return openTokenFile(plan, path);
  return std::make_unique<TensorDataset>(plan, path);
}

} // namespace zero::runtime

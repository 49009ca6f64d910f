// The samples of a run: which tensor of a file feeds which input of the plan, checked once when the
// file is opened and value by value when a sample is read.
#pragma once
#include "runtime/data/labels.h"
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zero::runtime {

struct DataOptions {
  LabelRule labels;
  std::vector<std::string> ignored; // tensors that may lie in a file although the plan does not read them
};

class Dataset {
public:
  virtual ~Dataset() = default;
  const std::string &path() const { return path_; }
  uint64_t samples() const { return samples_; }

  // Writes sample `sample` of plan input `input` (DATA or LABELS; of SHARED the whole tensor, `sample` being 0) to `dst`,
  // converted to the input's type. Throws a sentence that names the sample if a value lies outside the input's limit.
  virtual void read(int input, uint64_t sample, std::span<std::byte> dst) const = 0;
  // Whether read() may do so: no number is too large for an input of floats without a limit.
  virtual bool mayRefuse(int input) const = 0;
  // Labels of a sample in plan input `input` that are not the ignored value of the cross-entropy loss that reads them.
  virtual uint64_t countedLabels(int input, uint64_t sample) const = 0;
  // Whether the file has a tensor of this name, read or not.
  virtual bool holds(const std::string &tensor) const = 0;

protected:
  std::string path_;
  uint64_t samples_ = 0;
};

// Opens .safetensors, .npz, .bin, .u32.bin or .txt for this plan. Throws a sentence if the file does not fit it, or holds a
// tensor that the plan does not read. The plan must outlive the data set.
std::unique_ptr<Dataset> openDataset(const plan::Plan &plan, const std::string &path, const DataOptions &options = {});

// Elements one sample of an input has: all dimensions but the first.
uint64_t sampleElements(const plan::Input &input);

// The plan input that holds the labels of `loss`, or -1; and the label value that the loss of a LABELS input ignores.
int labelsOf(const plan::Plan &plan, const plan::Loss &loss);
std::optional<int64_t> ignoredLabel(const plan::Plan &plan, const plan::Input &input);

// What the numbers of an integer input may be.
struct NumberRange {
  int64_t low, end;
  std::optional<int64_t> ignored; // may lie elsewhere
  bool has(int64_t value) const { return (value >= low && value < end) || value == ignored; }
};
// All of which hold the numbers of an input: of the table that they index, and of the classes that they are labels of.
std::vector<NumberRange> rangesOf(const plan::Plan &plan, const plan::Input &input);

// Tokens of one sample: elements of the largest input whose values are indices into a table of the model (of an encoder-decoder: of the
// longer sequence). 0 for a model that has no such input.
uint64_t sampleTokens(const plan::Plan &plan);

} // namespace zero::runtime

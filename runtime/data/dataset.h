// The samples of a run: which tensor of a file feeds which input of the plan, checked once when the
// file is opened and value by value when a sample is read.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace zero::runtime {

class Dataset {
public:
  virtual ~Dataset() = default;
  const std::string &path() const { return path_; }
  uint64_t samples() const { return samples_; }

  // Writes sample `sample` of plan input `input` (DATA or LABELS) to `dst`, converted to the input's type. Throws a
  // sentence that names the sample if a value lies outside the input's limit.
  virtual void read(int input, uint64_t sample, std::span<std::byte> dst) const = 0;
  // Labels of a sample that are not the ignored value. Only for plans with a cross-entropy loss.
  virtual uint64_t countedLabels(uint64_t sample) const = 0;

protected:
  std::string path_;
  uint64_t samples_ = 0;
};

// Opens .safetensors, .npz, .bin, .u32.bin or .txt for this plan. Throws a sentence if the file does not fit it. The
// plan must outlive the data set.
std::unique_ptr<Dataset> openDataset(const plan::Plan &plan, const std::string &path);

// Elements one sample of an input has: all dimensions but the first.
uint64_t sampleElements(const plan::Input &input);

} // namespace zero::runtime

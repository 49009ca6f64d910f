// What parameters are before any step, and frozen ones always: the values of the model's file, or of a rule.
#pragma once
#include "runtime/files/file.h"
#include "runtime/plan/model_files.h"
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace zero::runtime {

class FirstValues {
public:
  // `threads` share the making of random numbers.
  explicit FirstValues(const plan::Plan &plan, int threads = 1) : modelFiles(plan), threads(threads) {}

  // Elements from `start` on. Throws a sentence if the file is not the one that the plan was compiled from.
  void read(const plan::Parameter &parameter, uint64_t start, std::span<float> out);

private:
  const File &open(const plan::Parameter &parameter);
  void readStored(const plan::Parameter &parameter, uint64_t start, std::span<float> out);

  plan::ModelFiles modelFiles;
  std::map<std::string, std::unique_ptr<File>> files; // hundreds of parameters usually share one
  int threads;
};

// Elements [start, start + count) of what Init.NORMAL with this seed and std yields.
void normalNumbers(uint64_t seed, float std, uint64_t start, uint64_t count, float *out);

} // namespace zero::runtime

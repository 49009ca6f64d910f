// The tensors of a bucket that checkpoints hold, with their names there.
#pragma once
#include "runtime/plan/state.h"
#include <string>
#include <utility>
#include <vector>

namespace zero::runtime {

struct SavedTensor {
  std::string name; // "param", "m", "v", "momentum"
  const plan::StateTensor *tensor;
};

inline const char *optimizerName(const plan::Plan &plan) { return plan.optimizer().kind() == plan::SGD ? "sgd" : "adamw"; }

// What the next step needs: no copies of it, and no gradient, which is complete when a step ends. Nothing of what is frozen (frozen.h).
inline std::vector<SavedTensor> savedTensors(const plan::Bucket &bucket) {
  if (!bucket.trainable()) return {};
  static constexpr std::pair<plan::StateTensor::Role, const char *> kNames[] = {{plan::StateTensor::MASTER, "param"},
                                                                                {plan::StateTensor::FIRST_MOMENT, "m"},
                                                                                {plan::StateTensor::SECOND_MOMENT, "v"},
                                                                                {plan::StateTensor::MOMENTUM, "momentum"}};
  std::vector<SavedTensor> tensors;
  for (auto [role, name] : kNames)
    if (const plan::StateTensor *tensor = plan::tensorOf(bucket, role)) tensors.push_back({name, tensor});
  return tensors;
}

} // namespace zero::runtime

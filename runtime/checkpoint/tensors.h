// The tensors a bucket keeps from step to step, with their names in checkpoints.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <string>
#include <vector>

namespace zero::runtime {

struct StateTensor {
  std::string name; // "param", "m", "v", "momentum"
  const plan::Ref *ref;
};

inline const char *optimizerName(const plan::Plan &plan) { return plan.optimizer().kind() == plan::SGD ? "sgd" : "adamw"; }

inline std::vector<StateTensor> stateTensors(const plan::Plan &plan, const plan::Bucket &bucket) {
  std::vector<StateTensor> tensors{{"param", &bucket.parameter()}};
  for (int i = 0; i < bucket.states_size(); ++i) {
    std::string name = plan.optimizer().kind() == plan::SGD ? "momentum" : i == 0 ? "m" : "v";
    tensors.push_back({name, &bucket.states(i)});
  }
  return tensors;
}

} // namespace zero::runtime

// Which of the plan's programs a run executes.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <vector>

namespace zero::runtime {

struct Programs {
  std::vector<uint32_t> micros; // of a training step: one program index per micro-step, or one for all of them
  int eval = -1;

  std::vector<uint32_t> used() const; // each once, for the engine
};

// Throws a sentence if the plan lacks what is asked for.
Programs choosePrograms(const plan::Plan &plan, bool train, bool clip, bool evaluate);

} // namespace zero::runtime

// What is known about one finished step, for metrics and progress alike.
#pragma once
#include "runtime/plan/lanes.h"
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace zero::runtime {

struct StepRecord {
  uint64_t step = 0;           // 1 for the first
  uint64_t steps = 0;          // of the whole run
  float loss = 0;              // mean over the global batch; of several losses their weighted sum
  std::vector<float> losses{}; // of several losses the mean of each, in the plan's order; else empty
  double lr = 0;
  std::optional<float> gradientNorm;
  std::optional<uint64_t> lossScale; // of this step, where the loss is scaled
  uint64_t skipped = 0;              // steps of the run so far that changed nothing, as their gradient was not finite
  double seconds = 0;
  bool countsTokens = true;                                  // false: samples, where the model reads no tokens
  double perSecond = 0;                                      // tokens or samples of all ranks
  double epoch = 0;                                          // how often every sample has been read after this step
  std::array<uint64_t, plan::kLaneNames.size()> laneBytes{}; // moved by this rank, by lane
  uint64_t memoryBytes = 0;                                  // arenas of this rank: what the plan said before the run
  std::optional<double> evalLoss;                            // after this step's update
};

} // namespace zero::runtime

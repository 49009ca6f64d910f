// Dynamic loss scaling of runs whose plan asks for it (Plan.scales_loss), as torch.amp.GradScaler does it: the loss, and with it every
// gradient, is multiplied by a scale, so that f16 can hold them; updates divide by it. A step whose gradient is not finite changes nothing,
// and the scale is halved; it is doubled after 2000 steps in a row that were not skipped. Powers of two, so that scaling rounds nothing.
#pragma once
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/train/options.h"

namespace zero::runtime {

inline constexpr uint64_t kInitialLossScale = 65536, kLargestLossScale = uint64_t(1) << 60, kStepsToGrow = 2000;

// Refuses, with a sentence, a scale for a plan that has none.
void checkLossScale(const plan::Plan &plan, const TrainOptions &options);

// Where a run begins or resumes: with the scale of the checkpoint if there is one, and without one if the plan has none.
void startLossScale(const plan::Plan &plan, const TrainOptions &options, Progress &at);

// After a step whose gradient was finite or not, which all ranks know alike. A scale that would fall below 1 becomes 0: the run has
// diverged.
void adjustLossScale(Progress &at, bool finite);

} // namespace zero::runtime

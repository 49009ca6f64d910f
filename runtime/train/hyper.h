// The numbers an optimizer step depends on: learning-rate schedule and the HYPER input's contents.
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/train/options.h"
#include <array>

namespace zero::runtime {

// Learning rate of the update number `step` (0 for the first) of a run of `steps`: rises linearly over the first
// `warmup` updates, reaching `peak` with the last of them, then stays, or falls to 0 at the end of the run along half a cosine or a line.
double learningRate(Schedule schedule, double peak, uint64_t step, uint64_t steps, uint64_t warmup);

struct Hyper {
  double beta1, beta2, eps, weightDecay, momentum, clip; // clip: 0 for any norm
  double lossScale = 1;                                  // that gradients have been multiplied by
};

// Options with torch's defaults where nothing was given. Throws for what the plan's optimizer does not have.
Hyper resolveHyper(const plan::Plan &plan, const TrainOptions &options);

// plan.HyperIndex for update number `update` (0 for the first).
std::array<float, 16> hyperInput(const Hyper &hyper, double lr, uint64_t update);

} // namespace zero::runtime

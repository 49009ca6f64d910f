#include "runtime/train/loss_scale.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::runtime {

void checkLossScale(const plan::Plan &plan, const TrainOptions &options) {
  if (options.lossScale && !plan.scales_loss())
    throw Error(fmt::format("--loss-scale is for plans of zeroc --precision f16, whose gradients need it; '{}' is none: leave it out",
                            options.plan));
}

void startLossScale(const plan::Plan &plan, const TrainOptions &options, Progress &at) {
  if (!plan.scales_loss())
    at.scale.reset();
  else if (!at.scale)
    at.scale = LossScale{options.lossScale && *options.lossScale ? *options.lossScale : kInitialLossScale, 0};
}

void adjustLossScale(Progress &at, bool finite) {
  LossScale &scale = *at.scale;
  if (!finite) {
    ++at.skipped;
    scale = {scale.value / 2, 0};
  } else if (++scale.good == kStepsToGrow) {
    scale = {std::min(scale.value * 2, kLargestLossScale), 0};
  }
}

} // namespace zero::runtime

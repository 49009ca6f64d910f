#include "runtime/train/hyper.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace zero::runtime {

double learningRate(Schedule schedule, double peak, uint64_t step, uint64_t steps, uint64_t warmup) {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (schedule == Schedule::Constant || steps <= warmup) return peak;
  double done = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(steps - warmup));
  return schedule == Schedule::Linear ? peak * (1 - done) : peak * 0.5 * (1 + std::cos(std::acos(-1.0) * done));
}

Hyper resolveHyper(const plan::Plan &plan, const TrainOptions &options) {
  bool sgd = plan.optimizer().kind() == plan::SGD;
  if (sgd && options.eps) throw Error("--eps belongs to AdamW, but the plan's optimizer is SGD");
  if (!sgd && options.betas.size() == 1) throw Error("--betas takes two numbers for AdamW, as in --betas 0.9,0.999");
  if (sgd && options.betas.size() == 2) throw Error("--betas takes one number for SGD: its momentum");
  for (double beta : options.betas)
    if (!(beta >= 0 && beta < 1)) throw Error(fmt::format("--betas must lie in [0, 1), not {}", beta));
  for (double beta : options.betas) // a moment that never changes, divided by a correction of 0
    if (static_cast<float>(beta) == 1)
      throw Error(fmt::format("--betas {} is 1 in single precision; the largest below it is 0.99999994", beta));
  auto notNegative = [](const char *flag, std::optional<double> value) {
    if (value && !std::isfinite(*value)) throw Error(fmt::format("{} must be a finite number, but is {}", flag, *value));
    if (value && *value < 0) throw Error(fmt::format("{} must not be negative, but is {}", flag, *value));
  };
  notNegative("--lr", options.lr);
  notNegative("--eps", options.eps);
  notNegative("--weight-decay", options.weightDecay);
  if (options.clip != HUGE_VAL) notNegative("--clip", options.clip); // which only measures the norm
  double first = options.betas.empty() ? (sgd ? 0.0 : 0.9) : options.betas[0];
  return {sgd ? 0 : first,
          options.betas.size() < 2 ? 0.999 : options.betas[1],
          options.eps.value_or(1e-8),
          options.weightDecay.value_or(sgd ? 0.0 : 0.01),
          sgd ? first : 0,
          options.clip.value_or(0)};
}

std::array<float, 16> hyperInput(const Hyper &hyper, double lr, uint64_t update) {
  std::array<float, 16> values{};
  auto t = static_cast<double>(update + 1);
  auto set = [&](plan::HyperIndex index, double value) { values[index] = static_cast<float>(value); };
  set(plan::LR, lr);
  set(plan::BETA1, hyper.beta1);
  set(plan::BETA2, hyper.beta2);
  set(plan::EPS, hyper.eps);
  set(plan::WEIGHT_DECAY, hyper.weightDecay);
  // From the betas as the kernel has them, in f32: the rounding of 1 - beta (4e-5 of it for 0.999) then cancels in the corrected moments.
  auto correction = [t](double beta) { return 1 - std::pow(static_cast<double>(static_cast<float>(beta)), t); };
  set(plan::BIAS_CORRECTION1, correction(hyper.beta1));
  set(plan::BIAS_CORRECTION2, correction(hyper.beta2));
  set(plan::MOMENTUM, hyper.momentum);
  set(plan::CLIP, hyper.clip > 0 ? hyper.clip : HUGE_VAL);
  set(plan::INVERSE_LOSS_SCALE, 1 / hyper.lossScale);
  return values;
}

} // namespace zero::runtime

#include "runtime/train/evaluate.h"

namespace zero::runtime {

void addLosses(const plan::Program &program, const Locate &locate, LossTerms &terms) {
  const auto *values = static_cast<const float *>(locate(program.loss()));
  for (size_t i = 0; i < program.loss().bytes() / sizeof(float); ++i) terms[i] += static_cast<double>(values[i]);
}

std::optional<double> evaluate(Engine &engine, const plan::Plan &plan, uint32_t program, const Feeder &feeder, const Locate &locate,
                               uint64_t step, uint64_t seed, const std::function<bool()> &goesOn) {
  LossTerms sums{}, shares{}; // of each loss: its labels decide how much a batch counts
  for (uint64_t batch = 0; batch < feeder.wholeBatches(); ++batch) {
    if (!goesOn()) return std::nullopt;
    uint64_t start = batch * feeder.globalBatch();
    LossDivisors divisors = feeder.divisors(start);
    feeder.fill({start, step, 0, seed, feeder.scales(divisors)}, static_cast<uint64_t>(engine.rank()), locate);
    engine.run(program);
    LossTerms terms{};
    addLosses(plan.programs(static_cast<int>(program)), locate, terms);
    for (size_t i = 0; i < terms.size(); ++i) sums[i] += divisors[i] * terms[i], shares[i] += divisors[i];
  }
  double loss = 0;
  for (size_t i = 0; i < sums.size(); ++i)
    if (shares[i] > 0) loss += sums[i] / shares[i];
  return loss;
}

} // namespace zero::runtime

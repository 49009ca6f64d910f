#include "runtime/train/evaluate.h"

namespace zero::runtime {

void addLosses(const State &state, const plan::Program &program, LossTerms &terms) {
  std::array<float, plan::kMaxLosses> values;
  size_t count = program.loss().bytes() / sizeof(float);
  state.read(program.loss(), 0, std::as_writable_bytes(std::span(values).first(count)));
  for (size_t i = 0; i < count; ++i) terms[i] += static_cast<double>(values[i]);
}

std::optional<double> evaluate(Engine &engine, const plan::Plan &plan, uint32_t program, const Feeder &feeder, uint64_t step, uint64_t seed,
                               const std::function<bool()> &goesOn) {
  Inputs inputs(plan);
  LossTerms sums{}, shares{}; // of each loss: its labels decide how much a batch counts
  for (uint64_t batch = 0; batch < feeder.wholeBatches(); ++batch) {
    if (!goesOn()) return std::nullopt;
    uint64_t start = batch * feeder.globalBatch();
    LossDivisors divisors = feeder.divisors(start);
    feeder.fill({start, step, 0, seed, feeder.scales(divisors)}, static_cast<uint64_t>(engine.rank()), inputs);
    inputs.writeTo(engine);
    engine.run(program);
    LossTerms terms{};
    addLosses(engine, plan.programs(static_cast<int>(program)), terms);
    for (size_t i = 0; i < terms.size(); ++i) sums[i] += divisors[i] * terms[i], shares[i] += divisors[i];
  }
  double loss = 0;
  for (size_t i = 0; i < sums.size(); ++i)
    if (shares[i] > 0) loss += sums[i] / shares[i];
  return loss;
}

} // namespace zero::runtime

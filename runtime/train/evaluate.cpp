#include "runtime/train/evaluate.h"
#include <deque>

namespace zero::runtime {

std::optional<double> evaluate(Runs &runs, uint32_t program, const Feeder &feeder, uint64_t rank, uint64_t step, uint64_t seed,
                               const std::function<bool()> &goesOn) {
  LossTerms sums{}, shares{};        // of each loss: its labels decide how much a batch counts
  std::deque<LossDivisors> underWay; // of the batches whose runs are not finished
  auto finish = [&] {
    LossDivisors divisors = underWay.front();
    underWay.pop_front();
    LossTerms terms = runs.finish().losses;
    for (size_t i = 0; i < terms.size(); ++i) sums[i] += divisors[i] * terms[i], shares[i] += divisors[i];
  };
  for (uint64_t batch = 0; batch < feeder.wholeBatches(); ++batch) {
    if (!goesOn()) {
      while (runs.any()) finish();
      return std::nullopt;
    }
    uint64_t start = batch * feeder.globalBatch();
    LossDivisors divisors = feeder.divisors(start);
    feeder.fill({start, step, 0, seed, feeder.scales(divisors)}, rank, runs.inputs());
    runs.submit(program);
    underWay.push_back(divisors);
    if (runs.full()) finish();
  }
  while (runs.any()) finish();
  double loss = 0;
  for (size_t i = 0; i < sums.size(); ++i)
    if (shares[i] > 0) loss += sums[i] / shares[i];
  return loss;
}

} // namespace zero::runtime

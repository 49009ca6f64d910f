#include "runtime/train/evaluate.h"
#include <numeric>

namespace zero::runtime {

std::optional<double> evaluate(Engine &engine, const plan::Plan &plan, uint32_t program, const Feeder &feeder, const Locate &locate,
                               uint64_t step, uint64_t seed, const std::function<bool()> &goesOn) {
  const plan::Ref &loss = plan.programs(static_cast<int>(program)).loss();
  double sum = 0, shares = 0, all = 0;
  LossDivisors totals{};
  if (plan.losses_size() > 1)
    for (uint64_t batch = 0; batch < feeder.wholeBatches(); ++batch) {
      LossDivisors some = feeder.divisors(batch * feeder.globalBatch());
      for (size_t i = 0; i < totals.size(); ++i) totals[i] += some[i], all += some[i];
    }
  for (uint64_t batch = 0; batch < feeder.wholeBatches(); ++batch) {
    if (!goesOn()) return std::nullopt;
    uint64_t start = batch * feeder.globalBatch();
    LossDivisors divisors = feeder.divisors(start);
    double share = std::accumulate(divisors.begin(), divisors.end(), 0.0);
    // Several losses come as one number, with one share in the mean: each is scaled to have the share of its own labels.
    for (size_t i = 0; all > 0 && i < divisors.size(); ++i) divisors[i] = share * (totals[i] / all);
    feeder.fill({start, step, 0, seed, feeder.scales(divisors)}, static_cast<uint64_t>(engine.rank()), locate);
    engine.run(program);
    sum += share * static_cast<double>(*static_cast<const float *>(locate(loss)));
    shares += share;
  }
  return shares > 0 ? sum / shares : 0;
}

} // namespace zero::runtime

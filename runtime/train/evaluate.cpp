#include "runtime/train/evaluate.h"

namespace zero::runtime {

std::optional<double> evaluate(Engine &engine, const plan::Plan &plan, uint32_t program, const Feeder &feeder, const Locate &locate,
                               uint64_t step, uint64_t seed, const std::function<bool()> &goesOn) {
  const plan::Ref &loss = plan.programs(static_cast<int>(program)).loss();
  double sum = 0, counted = 0;
  for (uint64_t start = 0; start + feeder.globalBatch() <= feeder.samples(); start += feeder.globalBatch()) {
    if (!goesOn()) return std::nullopt;
    uint64_t divisor = feeder.divisor(start);
    feeder.fill({start, step, 0, seed, divisor}, static_cast<uint64_t>(engine.rank()), locate);
    engine.run(program);
    sum += static_cast<double>(divisor) * *static_cast<const float *>(locate(loss));
    counted += static_cast<double>(divisor);
  }
  return counted > 0 ? sum / counted : 0;
}

} // namespace zero::runtime

//===- order.cpp --------------------------------------------------------------------------------------===//
#include "runtime/judge/order.h"

namespace zero::judge {

std::string nameOf(const Problem &problem, uint32_t step) {
  const Step &s = problem.steps[step];
  return "step " + std::to_string(step) + " '" + s.name + "' (" + laneName(s.lane) + ")";
}

Order orderOf(const Problem &problem) {
  Order order;
  std::array<std::vector<uint32_t>, kLaneCount> lanes;
  for (uint32_t s = 0; s < problem.steps.size(); ++s) lanes[problem.steps[s].lane].push_back(s);
  std::array<Clock, kLaneCount> now{}; // clock of the latest step of each lane
  std::array<size_t, kLaneCount> done{};
  std::array<std::vector<Clock>, kLaneCount> past;
  order.clocks.resize(problem.steps.size());
  order.ticks.resize(problem.steps.size());
  auto ready = [&](uint32_t lane) {
    if (done[lane] == lanes[lane].size()) return false;
    const auto &waits = problem.steps[lanes[lane][done[lane]]].waits;
    return std::all_of(waits.begin(), waits.end(), [&](const Wait &w) { return done[w.lane] >= w.tick; });
  };
  while (true) {
    uint32_t s = kNobody; // of the steps that may run, the first in program order
    for (uint32_t lane = 0; lane < kLaneCount; ++lane)
      if (ready(lane)) s = std::min(s, lanes[lane][done[lane]]);
    if (s == kNobody) break;
    uint32_t lane = problem.steps[s].lane;
    Clock clock = now[lane];
    for (const Wait &w : problem.steps[s].waits)
      if (w.tick > 0)
        for (uint32_t l = 0; l < kLaneCount; ++l) clock[l] = std::max(clock[l], past[w.lane][w.tick - 1][l]);
    order.clocks[s] = clock;
    order.ticks[s] = clock[lane] = ++done[lane];
    now[lane] = clock;
    past[lane].push_back(clock);
    order.sequence.push_back(s);
  }
  for (uint32_t lane = 0; lane < kLaneCount; ++lane)
    if (done[lane] < lanes[lane].size()) {
      uint32_t s = lanes[lane][done[lane]];
      for (const Wait &w : problem.steps[s].waits)
        if (done[w.lane] < w.tick)
          order.stuck += (order.stuck.empty() ? "" : "; ") + nameOf(problem, s) + " waits for tick " + std::to_string(w.tick) + " of " +
                         laneName(w.lane) +
                         (w.tick > lanes[w.lane].size() ? ", which has only " + std::to_string(lanes[w.lane].size()) + " steps" : "");
    }
  return order;
}

} // namespace zero::judge

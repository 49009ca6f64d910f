//===- order.cpp --------------------------------------------------------------------------------------===//
#include "runtime/judge/order.h"
#include "runtime/plan/lanes.h"

namespace zero::judge {

std::string nameOf(const Problem &problem, uint32_t step) {
  if (problem.isHost(step)) return "the host";
  const Step &s = problem.steps[step];
  return "step " + std::to_string(step) + " '" + s.name + "' (" + plan::laneName(s.lane) + ")";
}

std::array<std::vector<uint32_t>, kLaneCount> lanesOf(const Problem &problem) {
  std::array<std::vector<uint32_t>, kLaneCount> lanes;
  lanes[plan::COMPUTE].push_back(problem.host);
  for (uint32_t s = 0; s < problem.steps.size(); ++s)
    if (s != problem.host) lanes[problem.steps[s].lane].push_back(s);
  return lanes;
}

HappensBefore orderOf(const Problem &problem) {
  HappensBefore order;
  std::array<std::vector<uint32_t>, kLaneCount> lanes = lanesOf(problem);
  std::array<Clock, kLaneCount> now{}; // clock of the latest step of each lane
  std::array<size_t, kLaneCount> done{};
  std::array<std::vector<Clock>, kLaneCount> past;
  order.clocks.resize(problem.steps.size());
  order.ticks.resize(problem.steps.size());
  auto ready = [&](uint32_t lane) {
    if (done[lane] == lanes[lane].size()) return false;
    const auto &waits = problem.steps[lanes[lane][done[lane]]].waits;
    return std::all_of(waits.begin(), waits.end(), [&](const Wait &w) { return done[w.lane] >= countOf(w); });
  };
  auto place = [&](uint32_t s) { return s == problem.host ? 0 : int64_t(s) + 1; }; // in program order
  while (true) {
    uint32_t s = kNobody; // of the steps that may run, the first in program order
    for (uint32_t lane = 0; lane < kLaneCount; ++lane)
      if (ready(lane) && (s == kNobody || place(lanes[lane][done[lane]]) < place(s))) s = lanes[lane][done[lane]];
    if (s == kNobody) break;
    uint32_t lane = problem.steps[s].lane;
    Clock clock = now[lane];
    for (const Wait &w : problem.steps[s].waits)
      if (countOf(w) > 0) raise(clock, past[w.lane][countOf(w) - 1]);
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
        if (done[w.lane] < countOf(w)) {
          size_t steps = lanes[w.lane].size() - (w.lane == plan::COMPUTE ? 2 : 0);
          order.stuck += (order.stuck.empty() ? "" : "; ") + nameOf(problem, s) + " waits for tick " + std::to_string(w.tick) + " of " +
                         plan::laneName(w.lane) + (w.tick > steps ? ", which has only " + std::to_string(steps) + " steps" : "");
        }
    }
  return order;
}

} // namespace zero::judge

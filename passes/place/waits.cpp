//===- waits.cpp - which steps must wait for which --------------------------------------------------===//
#include "passes/place/waits.h"
#include "passes/place/past.h"

namespace zero::place {
/// Of the ticks that are needed, those that neither what is known already nor another of them says.
static std::vector<LaneWait> withoutImplied(const Clock &needed, const Clock &known, const Lanes &lanes) {
  std::vector<LaneWait> candidates, waits;
  for (int lane = 0; lane < kLanes; ++lane)
    if (needed[lane] > known[lane]) candidates.push_back({lane, needed[lane]});
  for (const LaneWait &candidate : candidates) {
    bool implied = std::any_of(candidates.begin(), candidates.end(), [&](const LaneWait &other) {
      return other.lane != candidate.lane && lanes.complete[other.lane][other.tick - 1][candidate.lane] >= candidate.tick;
    });
    if (!implied) waits.push_back(candidate);
  }
  return waits;
}

std::vector<std::vector<LaneWait>> findWaits(const std::vector<LaneStep> &steps) {
  Past past;
  return findWaits(steps, past);
}

std::vector<std::vector<LaneWait>> findWaits(const std::vector<LaneStep> &steps, Past &past) {
  std::vector<std::vector<LaneWait>> waits(steps.size());
  auto &[arenas, lanes] = past;
  for (size_t i = 0; i < steps.size(); ++i) {
    const LaneStep &step = steps[i];
    int64_t tick = lanes.ticks(step.lane) + 1;
    Clock needed{}, known = lanes.start(step.lane);
    for (const MemoryAccess &access : step.accesses)
      if (access.begin < access.end) arenas[access.arena].touch(access, step.lane, tick, needed);
    needed[step.lane] = 0; // lane order, or another access of the same step
    waits[i] = withoutImplied(needed, known, lanes);
    for (const LaneWait &wait : waits[i]) lanes.wait(known, wait);
    lanes.finish(step.lane, known);
  }
  return waits;
}

std::vector<std::vector<LaneWait>> findEntryWaits(const Past &before, const std::vector<LaneStep> &steps,
                                                  const std::vector<std::vector<LaneWait>> &waits) {
  Clock all;
  for (int lane = 0; lane < kLanes; ++lane) all[lane] = before.lanes.ticks(lane);
  std::vector<std::vector<LaneWait>> entry(steps.size());
  std::array<std::vector<Clock>, kLanes> complete; // by step of each lane: what of `before` is known to be
  for (size_t i = 0; i < steps.size(); ++i) {
    const LaneStep &step = steps[i];
    Clock known = complete[step.lane].empty() ? before.lanes.start(step.lane) : complete[step.lane].back();
    for (const LaneWait &wait : waits[i])
      if (wait.tick > 0) raise(known, complete[wait.lane][wait.tick - 1]);
    if (known != all) { // it is, for whatever stands after a step that knows it
      Clock needed{};
      for (const MemoryAccess &access : step.accesses)
        if (auto arena = before.arenas.find(access.arena); arena != before.arenas.end() && access.begin < access.end)
          arena->second.visit(access, needed);
      entry[i] = withoutImplied(needed, known, before.lanes);
      for (const LaneWait &wait : entry[i]) before.lanes.wait(known, wait);
    }
    complete[step.lane].push_back(known);
  }
  return entry;
}

std::vector<Clock> clocksOf(const std::vector<LaneStep> &steps, const std::vector<std::vector<LaneWait>> &waits) {
  std::vector<Clock> clocks;
  Lanes lanes;
  for (size_t i = 0; i < steps.size(); ++i) {
    Clock clock = lanes.start(steps[i].lane);
    for (const LaneWait &wait : waits[i]) {
      if (wait.tick < 0 || wait.tick > lanes.ticks(wait.lane)) return {};
      lanes.wait(clock, wait);
    }
    clocks.push_back(clock);
    lanes.finish(steps[i].lane, clock);
  }
  return clocks;
}

} // namespace zero::place

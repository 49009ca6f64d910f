//===- refine.cpp - what is decided of a choice that fits ------------------------------------------------===//
#include "passes/pipeline/refine.h"

using namespace mlir;

namespace zero::pipeline {

using state::Tier;

Trial Refine::place(Settings settings, ArrayRef<Trial> others, int enough) {
  Trial placed = withOffsets(settings);
  for (int64_t more : {1, 2, 2}) {
    if (llvm::count_if(others, [&](const Trial &other) { return !faster(placed, other); }) >= enough) break;
    auto excess = int64_t(placed.need.of(Tier::device) - *budgets.device);
    int64_t leaves = std::max(more * excess, int64_t(trials.limit / 256));
    int64_t &state = settings.shard.tiers.deviceBytes;
    if (excess <= 0 || leaves >= state) break;
    state -= leaves;
    placed = withOffsets(settings);
  }
  return placed;
}

bool Refine::hides(const Trial &usual) {
  auto isHidden = [](const Trial &trial) { return trial.time.seconds <= 1.01 * trial.time.of(simulate::kProcessors); };
  if (!isHidden(usual)) return false;
  Trial placed = place(gather(usual).settings);
  return trials.keeps(placed) && (isHidden(placed) || isHidden(leaveRoom(placed)));
}

Trial Refine::withOffsets(Settings &settings) {
  Trial placed = trials.attempt(settings, /*places=*/true);
  uint64_t need = placed.need.of(Tier::host), state = placed.need.state[size_t(Tier::host)], room = budgets.host.value_or(UINT64_MAX);
  if (need <= room || state <= need - room) return placed;
  settings.shard.tiers.hostBytes = std::min(settings.shard.tiers.hostBytes, int64_t(state - (need - room)));
  return trials.attempt(settings, /*places=*/true);
}

Trial Refine::keepGathered(const Trial &usual) {
  if (!gathers(usual)) return usual;
  uint64_t room = trials.limit - usual.need.of(Tier::device);
  for (uint64_t bytes : {room + usual.need.work[size_t(Tier::device)], room, room / 2, room / 4}) {
    if (bytes < std::max(usual.leastGathered, trials.limit / 64)) break; // nothing would be kept, or hardly anything
    Settings with = usual.settings;
    with.schedule.residentBytes = int64_t(std::min<uint64_t>(bytes, INT64_MAX));
    if (Trial trial = trials.attempt(with); trials.fits(trial) && rankOf(trials.timed(trial)) <= rankOf(usual)) return trials.timed(trial);
  }
  return usual;
}

Trial Refine::reduceLonger(const Trial &usual) {
  const Settings &settings = usual.settings;
  if (settings.shard.partition.world == 1 || settings.schedule.delay == 0) return usual;
  Trial best = usual;
  for (int64_t delay : {2, 4, 8}) {
    if (best.time.seconds <= 1.02 * best.time.of(simulate::kProcessors)) break;
    Settings longer = settings;
    longer.schedule.delay = delay;
    Trial trial = trials.attempt(longer);
    if (!trials.fits(trial)) break;
    trial = trials.timed(trial);
    if (rankOf(trial) >= rankOf(best)) break;
    best = trial;
  }
  return best;
}

Trial Refine::gatherEarlier(const Trial &usual) {
  Trial best = reduceLonger(usual);
  if (!gathers(usual) || usual.settings.schedule.ahead == 0) return best;
  int64_t ranks = usual.settings.shard.partition.stage == 3 ? usual.settings.shard.partition.world : 1;
  for (int64_t part : {4, 2}) {
    if (best.time.seconds <= 1.02 * best.time.of(simulate::kProcessors)) break;
    Settings earlier = usual.settings;
    earlier.schedule.earlyBytes = int64_t(usual.bytesOf(kTrained)) * ranks / part;
    if (uint64_t(earlier.schedule.earlyBytes) > trials.limit) break; // they are all there at once
    Trial trial = trials.attempt(earlier);
    if (!trials.fits(trial)) break;
    trial = reduceLonger(trials.timed(trial));
    if (rankOf(trial) < rankOf(best)) best = trial;
  }
  return best;
}

Trial Refine::updateLater(const Trial &placed) {
  if (placed.settings.shard.programs.clip != "never") return placed; // the step that is estimated clips: its updates are late in any case
  Trial best = placed;
  auto improves = [&](int64_t part) { // of all gradients, with AdamW half of what the optimizer keeps
    if (best.time.seconds <= 1.05 * best.time.of(simulate::kProcessors)) return false; // nothing is left to hide
    Settings settings = placed.settings;
    settings.shard.movement.lateBytes = int64_t(placed.bytesOf(kOptimizer)) / 2 / part;
    if (!settings.usuallyCopied) settings.usuallyCopied = placed.copied;
    Trial trial = place(settings);
    bool better = trials.keeps(trial) && faster(trial, best);
    if (better) best = trial;
    return better;
  };
  bool more = improves(8); // then as many more, or fewer, as improve
  for (int64_t part : more ? std::array{6, 4, 3} : std::array{12, 16, 24})
    if (!improves(part)) break;
  return best;
}

Trial Refine::deferWrites(const Trial &placed) {
  const Settings &settings = placed.settings;
  bool besideForward = settings.shard.programs.clip != "never" || settings.shard.movement.lateBytes > 0;
  if (!besideForward || !placed.rests[kOptimizer][size_t(Tier::disk)]) return placed;
  Trial best = placed;
  auto improves = [&](int64_t sixths) {
    if (best.time.seconds <= 1.02 * best.time.of(simulate::kProcessors)) return false; // nothing is left to hide
    Settings deferring = settings;
    // Of what programs keep on the device.
    deferring.schedule.deferredBytes = int64_t(placed.need.work[size_t(Tier::device)]) * sixths / 6;
    if (isUnnoticed(uint64_t(deferring.schedule.deferredBytes), placed)) return false;
    Trial trial = withOffsets(deferring);
    bool better = trials.keeps(trial) && faster(trial, best);
    if (better) best = trial;
    return better;
  };
  improves(improves(4) ? 5 : 2);
  return best;
}

std::optional<Trial> Refine::spread(const Trial &placed) {
  Settings settings = placed.settings;
  bool together = llvm::is_contained(placed.rests[kOptimizer], placed.bytesOf(kOptimizer)); // all of it in one tier
  if (together || settings.shard.tiers.hostUpdates)
    return std::nullopt; // which buckets the host updates depends on where all of each rests
  settings.shard.tiers.spread = true;
  Trial trial = place(settings);
  return trials.keeps(trial) && faster(trial, placed) ? std::optional(trial) : std::nullopt;
}

Trial Refine::leaveRoom(const Trial &placed) {
  double apart = trials.timed(trials.attempt(placed.settings)).time.seconds; // where buffers share nothing
  Trial best = placed;
  auto withRoom = [&](int64_t part) { // of that arena
    Settings settings = placed.settings;
    int64_t &state = settings.shard.tiers.deviceBytes;
    state -= std::min(state, int64_t(placed.need.work[size_t(Tier::device)]) / part);
    return settings;
  };
  for (int64_t part : {8, 4, 2}) {
    if (placed.settings.shard.tiers.deviceBytes <= 0 || best.time.seconds <= 1.02 * apart) break;
    Settings settings = withRoom(part);
    if (part == 8)
      trials.speculateAlso(
          [&budgets = budgets, next = withRoom(4)](Trials &speculative) mutable { Refine(speculative, budgets).withOffsets(next); });
    if (part < 4) settings.usuallyCopied = best.copied; // so much has to be worth it
    Trial trial = withOffsets(settings);
    bool better = trials.keeps(trial) && rankOf(trial) < rankOf(best);
    if (!better && part <= 4) break; // half of it only where a quarter gains
    if (better) best = trial;
  }
  return best;
}

} // namespace zero::pipeline

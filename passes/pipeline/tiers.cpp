//===- tiers.cpp - where everything rests, for one form -----------------------------------------------===//
#include "passes/pipeline/tiers.h"
#include "passes/pipeline/refine.h"
#include <utility>

using namespace mlir;

namespace zero::pipeline {

using state::Tier;

namespace {

constexpr int kSizes = 4;       // of trying how much fits
constexpr unsigned kRounds = 3; // of trying how much another tier has room for

/// Copies take so much longer than computation that bytes which spare some are worth more than copies beside computation.
bool copiesPrevailIn(const Trial &trial) { return trial.time.least() > 2 * trial.time.of(simulate::kProcessors); }

} // namespace

Settings inTurn(Settings settings) {
  settings.schedule.ahead = settings.schedule.delay = settings.schedule.fetchAhead = 0;
  settings.shard.merges.distance = shard::kMergeDistance;
  return settings;
}

void Tiers::choose() {
  Trial all = trials.attempt(onDevice());
  if (trials.fits(all)) return fitting.push_back(trials.timed(all));
  bool state = opensState(), activations = opensActivations();
  // What travels only when its turn comes may wait: others may be faster that have room to travel earlier.
  if (all.settings.shard.partition.world > 1 || gathers(all))
    if (offer(gatherLater(onDevice())) && best().time.seconds <= 1.01 * best().time.least()) return;
  offerSizes(onDevice());
  if (asked.shard.merges.distance > shard::kMergeDistance && (all.settings.shard.partition.world > 1 || state)) {
    Settings apart = onDevice(); // all that tiles of tokens go through may take more room than it spares copies
    apart.shard.merges.distance = shard::kMergeDistance;
    offerSizes(apart);
  }
  if (question.anyRecomputation && !computesAllTheTime())
    if (!offer(sizeKept()) && mayBeFaster(keepingLeast())) offerSizes(keepingLeast());
  if (state && !offered().empty() && copiesPrevailIn(best())) offer(sizeState(inTurn(best().settings)));
  if (!offered().empty()) return;
  // Whatever may leave is away, or what lies within blocks is made again, then both; of state the host has all its room, or none where what
  // else lies there and what updates work on need it.
  std::vector<Settings> sparing;
  if (activations && budgets.host) sparing.push_back(away(onDevice()));
  sparing.push_back(activations ? away(onDevice(), Tier::disk) : onDevice());
  if (question.anyRecomputation) sparing.push_back(keepingLeast());
  if (question.anyRecomputation && activations) sparing.push_back(away(keepingLeast(), Tier::disk));
  for (Settings &settings : sparing) {
    auto &tiers = settings.shard.tiers;
    if (state) tiers.deviceBytes = 0, tiers.hostBytes = int64_t(budgets.host.value_or(0));
    if (offered().empty()) offer(gatherLater(settings));
    if (tiers.hostBytes == 0) continue;
    tiers.hostBytes = 0;
    if (offered().empty()) offer(gatherLater(settings));
  }
}

bool Tiers::offer(const std::optional<Trial> &trial) {
  auto isThat = [&](const Trial &other) { return keyOf(other.settings, false) == keyOf(trial->settings, false); };
  if (trial && llvm::none_of(fitting, isThat)) fitting.push_back(trials.timed(*trial));
  return trial.has_value();
}

void Tiers::offerSizes(const Settings &settings) {
  bool parametersStay = false, activations = opensActivations();
  auto offerSize = [&](const std::optional<Trial> &trial) {
    parametersStay |= trial && !trial->offloadsParameters();
    return offer(trial);
  };
  bool stateMustLeave = opensState() && trials.attempt(onDevice()).need.state[size_t(Tier::device)] > trials.limit; // whatever else leaves
  if (activations && !stateMustLeave) offerSize(sizeActivations(settings));
  if (opensState()) offerSize(sizeState(settings));
  if (!opensState() || !activations || parametersStay) return;
  offerStateWithActivations(settings);
  Settings logitsStay = away(settings);
  if (std::exchange(logitsStay.schedule.activationWork, 0) > 0) offer(sizeState(logitsStay));
}

void Tiers::offerStateWithActivations(const Settings &settings) {
  offer(sizeState(away(settings)));
  if (budgets.host) offer(sizeState(away(settings, Tier::disk))); // the host has room for more of the state then
}

void Tiers::chooseStateWithActivations() {
  if (opensState() && opensActivations()) offerStateWithActivations(onDevice());
}

void Tiers::chooseFetchingMasters(const Trial &withCopies) {
  Settings settings = withCopies.settings;
  settings.shard.tiers.fetchMasters = true;
  if (!opensState()) return;
  std::optional<Trial> found = sizeState(settings);
  if (found && found->offloadsParameters() && faster(trials.timed(*found), withCopies)) offer(found);
}

bool Tiers::mayBeFaster(const Settings &settings) {
  if (offered().empty()) return true;
  double computation = trials.timed(trials.probe(settings)).time.of(simulate::kProcessors);
  if (computation < best().time.seconds) return true;
  trials.speculateAlso([&question = question, asked = asked, settings](Trials &speculative) {
    std::vector<Trial> fitting;
    Tiers(speculative, question, asked, fitting).offerSizes(settings);
  });
  Refine refine(trials, budgets);
  Trial placed = refine.place(refine.gather(best()).settings);
  if (!trials.keeps(placed)) return true;
  return computation < placed.time.seconds && computation < refine.leaveRoom(placed).time.seconds;
}

Settings Tiers::onDevice() const {
  Settings settings = asked;
  settings.shard.tiers.deviceBytes = -1;
  settings.shard.tiers.hostBytes = 0;
  if (isOpen(asked.schedule.activations)) settings.schedule.activations = "none";
  return settings;
}

Settings Tiers::away(Settings settings, Tier tier) const {
  settings.schedule.activations = budgets.host && tier == Tier::host ? "host" : "disk";
  return settings;
}

/// Whether something fits whose copies hide behind computation: who computes more is not faster.
bool Tiers::computesAllTheTime() {
  return llvm::any_of(fitting, [&](const Trial &trial) { return Refine(trials, budgets).hides(trial); });
}

/// What lies within blocks is made again in backward.
Settings Tiers::keepingLeast() const {
  Settings settings = onDevice();
  settings.keepBytes = 0;
  return settings;
}

/// As many activations kept as there is room for on the device, the others made again, and all state there.
std::optional<Trial> Tiers::sizeKept() {
  Settings settings = keepingLeast();
  Trial none = trials.attempt(settings);
  if (!trials.fits(none)) return std::nullopt;
  auto made = int64_t(trials.made(onDevice()).need.of(Tier::device) - none.need.of(Tier::device));
  return grow(none, made, [&](int64_t kept) {
    settings.keepBytes = none.keptActivations + uint64_t(kept);
    return settings;
  });
}

/// As many activations as there is room for on the device, all state there.
std::optional<Trial> Tiers::sizeActivations(Settings settings) {
  settings = away(settings);
  Trial none = trials.attempt(settings);
  if (!trials.fits(none) && budgets.host) {
    settings.schedule.activations = "disk";
    none = trials.attempt(settings);
  }
  if (settings.schedule.activations == "disk" && budgets.disk && none.need.of(Tier::disk) > *budgets.disk) { // the rest of them stays
    auto room = int64_t(none.need.work[size_t(Tier::disk)]) - int64_t(none.need.of(Tier::disk) - *budgets.disk);
    if (room > 0) settings.schedule.activationBytes = room, none = trials.attempt(settings);
  }
  if (!trials.fits(none)) return std::nullopt;
  auto away = int64_t(none.need.work[size_t(settings.schedule.activations == "host" ? Tier::host : Tier::disk)]);
  return grow(none, away, [&](int64_t kept) {
    settings.schedule.activationBytes = away - kept;
    return settings;
  });
}

/// As much state as there is room for on the device, then on the host.
std::optional<Trial> Tiers::sizeState(Settings settings) {
  auto &tiers = settings.shard.tiers;
  tiers.deviceBytes = 0;
  tiers.hostBytes = int64_t(budgets.host.value_or(0));
  Trial none = trials.attempt(settings);
  // Activations lie there too, and what updates of state on disk work on, which is more where less state rests there.
  for (unsigned round = 0; round < kRounds && budgets.host && tiers.hostBytes && none.need.of(Tier::host) > *budgets.host; ++round) {
    auto excess = int64_t(none.need.of(Tier::host) - *budgets.host);
    tiers.hostBytes = std::max<int64_t>(0, tiers.hostBytes - (excess << round));
    none = trials.attempt(settings);
  }
  // What neither has room for stays.
  for (unsigned round = 0; round < kRounds && budgets.disk && none.need.of(Tier::disk) > *budgets.disk; ++round) {
    tiers.deviceBytes += int64_t(none.need.of(Tier::disk) - *budgets.disk) << round;
    none = trials.attempt(settings);
  }
  if (!trials.fits(none)) return std::nullopt;
  int64_t open = 0;
  if (isOpen(asked.shard.tiers.offloadParams)) open += int64_t(none.bytesOf(kTrained) + none.bytesOf(kFrozen));
  if (isOpen(asked.shard.tiers.offloadOptimizer)) open += int64_t(none.bytesOf(kOptimizer));
  auto keep = [&](int64_t kept) {
    tiers.deviceBytes = kept;
    return settings;
  };
  return fillHost(grow(none, open, keep, tiers.deviceBytes));
}

/// What is on disk though the host has room for it, now that more of the state is on the device: what updates of state on disk work on
/// takes less of the host, too.
Trial Tiers::fillHost(Trial most) {
  if (!budgets.host) return most;
  uint64_t least = *budgets.host / 64; // less is not worth a trial
  for (unsigned round = 0; round < kRounds && most.need.of(Tier::disk) > least; ++round) {
    Settings more = most.settings;
    uint64_t room = (*budgets.host - most.need.of(Tier::host)) >> round;
    if (room < least) break;
    more.shard.tiers.hostBytes += int64_t(room);
    if (Trial trial = trials.attempt(more); trials.fits(trial) && trial.copied <= most.copied) most = trial;
  }
  return most;
}

/// The most of something that fits on the device: `low` of it does (`none`), all of it does not, and a byte of it takes a byte or less.
Trial Tiers::grow(Trial none, int64_t all, llvm::function_ref<Settings(int64_t)> keep, int64_t low) {
  Trial most = none;
  int64_t high = all, excess = 0; // of `high`, over the limit
  for (int size = 0; size < kSizes && high - low > all / 256; ++size) {
    auto room = int64_t(trials.limit - most.need.of(Tier::device));
    if (room <= int64_t(trials.limit / 512)) break;
    int64_t kept = std::min(low + room, high - excess);
    if (kept <= low || kept >= high) kept = low + (high - low) / 2;
    Trial trial = trials.attempt(keep(kept));
    if (trials.fits(trial) && trial.copied <= most.copied) {
      most = trial, low = kept;
    } else {
      int64_t over = std::max<int64_t>(0, int64_t(trial.need.of(Tier::device) - trials.limit));
      high = kept, excess = over == excess ? (high - low) / 2 : over; // what moves is buckets: less by a few bytes may be none
    }
  }
  return most;
}

/// Buckets that are gathered early, and gradients that travel while others are computed, cost memory: with less of it they come later, as
/// early as there is room.
std::optional<Trial> Tiers::gatherLater(Settings settings) {
  int64_t usual = settings.schedule.ahead, fetchAhead = settings.schedule.fetchAhead;
  settings = inTurn(settings);
  Trial latest = trials.attempt(settings);
  if (!trials.fits(latest)) return std::nullopt;
  settings.schedule.fetchAhead = fetchAhead;
  for (int64_t ahead = gathers(latest) ? usual : 0; ahead >= 0; --ahead)
    for (int64_t delay : {1, 0}) {
      settings.schedule.ahead = ahead;
      settings.schedule.delay = delay;
      if (ahead + delay + fetchAhead == 0) break;
      if (Trial trial = trials.attempt(settings); trials.fits(trial)) return trial;
    }
  return latest;
}

Settings Tiers::mostSparing(bool makesAgain) const {
  Settings settings = inTurn(makesAgain ? keepingLeast() : onDevice());
  if (isOpen(asked.schedule.activations)) settings = away(settings);
  if (isOpen(asked.shard.tiers.offloadParams) || isOpen(asked.shard.tiers.offloadOptimizer)) settings.shard.tiers.deviceBytes = 0;
  return settings;
}

} // namespace zero::pipeline

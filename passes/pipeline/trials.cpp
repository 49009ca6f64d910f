//===- trials.cpp - the choices that were tried -------------------------------------------------------===//
#include "passes/pipeline/trials.h"
#include "passes/pipeline/quiet.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace zero::pipeline {

using state::Tier;

Rank rankOf(const Trial &trial) {
  // Gradients that wait for late updates take room, for which more is copied, and so does room that lets lanes run apart; that wears disks:
  // the step has to become shorter by half as much.
  uint64_t usual = trial.settings.usuallyCopied;
  double seconds = trial.time.seconds * (usual ? std::sqrt(std::max(1.0, double(trial.copied) / double(usual))) : 1);
  auto percents = int64_t(std::floor(std::log(std::max(seconds, 1e-9)) / std::log(1.01)));
  int64_t tokens = trial.settings.tiling.tokens ? -trial.settings.tiling.tokens : INT64_MIN; // all of them are most
  return {percents,     trial.settings.tiling.parts,
          tokens,       trial.settings.shard.partition.stage,
          trial.copied, trial.settings.shard.partition.vertical};
}
bool faster(const Trial &a, const Trial &b) { return rankOf(a) < rankOf(b); }

bool gathers(const Trial &trial) {
  const shard::PartitionPassOptions &partition = trial.settings.shard.partition;
  return trial.offloadsParameters() || (partition.stage == 3 && partition.world > 1);
}

Trials::Trials(Evaluations &evaluations, const Modules &fewLayers, const Question &question, Speculation &speculation)
    : limit(question.budgets.device.value_or(UINT64_MAX)), evaluations(evaluations), fewLayers(fewLayers), question(question),
      budgets(question.budgets), speculation(&speculation) {}

Trials::Trials(const Trials &other, const std::atomic<bool> &stop)
    : limit(other.limit), least(other.least), leastState(other.leastState), broken(other.broken), evaluations(other.evaluations),
      fewLayers(other.fewLayers), question(other.question), budgets(other.budgets), stop(&stop), trials(other.trials),
      tilings(other.tilings), fastestRank(other.fastestRank) {}

void Trials::speculate(const std::vector<Part> &parts) {
  if (!speculation || !speculation->any()) return;
  evaluations.dropModules();
  std::vector<Speculation::Work> works;
  for (const Part &part : parts) works.push_back(workOf(part));
  speculation->begin(std::move(works));
}

void Trials::speculateAlso(const Part &part) {
  if (speculation && speculation->any()) speculation->add(workOf(part));
}

Speculation::Work Trials::workOf(const Part &part) const {
  auto stop = std::make_shared<std::atomic<bool>>(false);
  auto trials = std::shared_ptr<Trials>(new Trials(*this, *stop));
  return {stop, [trials, part] { part(*trials); }};
}

void Trials::reached(size_t part) {
  if (speculation) speculation->reached(part);
}

Trials::Tried &Trials::triedOut(const Settings &settings, bool places) {
  auto [known, fresh] = trials.try_emplace(keyOf(settings, places));
  auto &[trial, counts, isTimed] = known->second;
  if (!fresh) return known->second;
  trial.settings = settings;
  trial.need.state[0] = UINT64_MAX;
  tilings.insert(settings.tiling);
  broken |= stop && *stop;
  FailureOr<TriedOut> result = failure();
  if (!broken) result = evaluations.of(settings, places);
  broken |= failed(result);
  if (broken) return known->second;
  steps += result->steps;
  trial = result->trial;
  isTimed = places;
  if (places && keeps(trial) && (!fastestRank || rankOf(trial) < *fastestRank)) {
    fastestRank = rankOf(trial);
    fastest = std::move(*result);
  } else if (!places && result->scheduled) {
    (fits(trial) ? latest : probed) = std::move(*result);
  }
  return known->second;
}

OwningOpRef<ModuleOp> Trials::takeFastest() {
  if (!fastestRank || broken) return {};
  if (!fastest.scheduled) {
    FailureOr<TriedOut> again = evaluations.again(fastest.trial.settings, /*places=*/true);
    broken |= failed(again);
    if (!broken) fastest = std::move(*again);
  }
  return std::move(fastest.scheduled);
}

Trial Trials::attempt(const Settings &settings, bool places) {
  std::optional<Trial> known = places ? std::nullopt : ruledOut(settings);
  return known ? *known : made(settings, places);
}

std::optional<Trial> Trials::ruledOut(Settings settings) const {
  const Tiling asked = settings.tiling;
  bool merges = settings.shard.merges.distance == mergeDistance(asked);
  auto isCoarser = [&](Tiling other) {
    bool keepsMore = other.keepLogits && !asked.keepLogits && other.parts > 1;
    bool tokens = other.tokens == 0 || (asked.tokens && other.tokens >= asked.tokens);
    return other != asked && other.parts <= asked.parts && tokens && !keepsMore;
  };
  for (Tiling other : tilings) {
    settings.tiling = other;
    if (merges) settings.shard.merges.distance = mergeDistance(other);
    auto found = isCoarser(other) ? trials.find(keyOf(settings, /*places=*/false)) : trials.end();
    if (found == trials.end()) continue;
    Trial trial = found->second.trial;
    uint64_t least = leastWith(asked, trial), state = trial.need.state[size_t(Tier::device)];
    if (least <= limit || trial.copied == 0) continue; // what rests on the device tells what every choice copies
    trial.settings.tiling = asked;
    if (merges) trial.settings.shard.merges.distance = mergeDistance(asked);
    trial.need.work[size_t(Tier::device)] = least - std::min(least, state);
    return trial;
  }
  return std::nullopt;
}

uint64_t Trials::leastWith(Tiling tiling, const Trial &trial) const {
  return trial.need.of(Tier::device) / tiling.tiles(question.tokens) * trial.settings.tiling.tiles(question.tokens);
}

Trial Trials::made(const Settings &settings, bool places) {
  auto &[trial, counts, isTimed] = triedOut(settings, places);
  if (!counts) ++tried;
  counts = true;
  leastState = std::min(leastState, std::accumulate(trial.need.state.begin(), trial.need.state.end(), uint64_t(0)));
  if (!broken && (!least || trial.need.of(Tier::device) < least->need.of(Tier::device))) least = trial;
  return trial;
}

Trial Trials::timed(const Trial &given) {
  auto &[trial, counts, isTimed] = triedOut(given.settings, /*places=*/false);
  if (isTimed || broken) return trial;
  isTimed = true;
  auto isIt = [&](const TriedOut &made) { return made.scheduled && keyOf(made.trial.settings, false) == keyOf(trial.settings, false); };
  TriedOut made = isIt(latest) ? std::move(latest) : isIt(probed) ? std::move(probed) : TriedOut{trial, {}, 0};
  broken |= failed(evaluations.estimate(made));
  if (!broken) trial.time = made.trial.time;
  return trial;
}

uint64_t Trials::needsAtLeast(const Settings &settings) {
  ModuleOp fused = fewLayers(settings.tiling);
  if (!fused) return 0;
  Quiet quiet;
  FailureOr<TriedOut> tried = tryOut(fused, settings, question, /*places=*/false);
  if (failed(tried)) return 0;
  steps += tried->steps;
  return tried->trial.need.of(Tier::device);
}

bool Trials::isWithin(const Trial &trial, uint64_t device) const {
  return trial.need.of(Tier::device) <= device && trial.need.of(Tier::host) <= budgets.host.value_or(UINT64_MAX) &&
         trial.need.of(Tier::disk) <= budgets.disk.value_or(UINT64_MAX);
}

Trial Trials::leastOfAll() const {
  auto need = [](const Trial &trial) {
    return std::pair(trial.need.of(Tier::device), trial.need.of(Tier::host) + trial.need.of(Tier::disk));
  };
  Trial found = *least;
  for (const auto &[key, other] : trials)
    if (other.counts && need(other.trial) < need(found)) found = other.trial;
  return found;
}

std::vector<Trial> Trials::resident() const {
  std::vector<Trial> found;
  for (const auto &[key, other] : trials)
    if (other.counts && other.trial.copied == 0) found.push_back(other.trial);
  return found;
}

} // namespace zero::pipeline

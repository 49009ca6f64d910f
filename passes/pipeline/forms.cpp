//===- forms.cpp - the forms of a plan that fit ------------------------------------------------------===//
#include "passes/pipeline/forms.h"
#include "passes/pipeline/refine.h"
#include "passes/train/Passes.h"
#include <map>

using namespace mlir;

namespace zero::pipeline {

using state::Tier;

namespace {

constexpr int64_t kFewestTokens = 64; // of a micro-step that is worth tiles
constexpr int64_t kMostTiles = 64;    // of both kinds together: planning takes time with their number

/// Bytes that a step copies less, at the most, if all that programs work on were room for what rests elsewhere: parts gain no more.
uint64_t sparedWithoutWork(const Trial &trial) {
  double often = 2; // copies of a byte: an activation's
  for (const shard::Removal &removal : trial.removals)
    if (removal.bytes) often = std::max(often, double(removal.traffic) / double(removal.bytes));
  return uint64_t(often * double(trial.need.work[size_t(Tier::device)]));
}

} // namespace

void Forms::choose() {
  fitting.clear();
  std::vector<int64_t> parts{question.asked.tiling.parts}, tokens{question.asked.tiling.tokens};
  if (question.anyTiles) parts = {1, 4, 8, 16};
  if (question.anyTokens) tokens = {0};
  if (question.anyTokens && question.tokens >= kFewestTokens) tokens = {0, (question.tokens + 3) / 4, (question.tokens + 15) / 16};
  setTiling(question.asked.tiling);
  chooseForm();
  makeLargeLogitsAgain(asked.tiling);
  for (int64_t tileTokens : ArrayRef(tokens).drop_front()) {
    if (!fitting.empty() && (tilesGainNothing({}) || asked.tiling.tokens)) break;
    if (!chooseFormWith({asked.tiling.parts, tileTokens})) break;
  }
  if (!fitting.empty()) setTiling(fitting[0].settings.tiling);
  const Tiling best = asked.tiling;
  std::vector<Tiling> tiled;
  for (int64_t tileParts : ArrayRef(parts).drop_front()) tiled.push_back({tileParts, best.tokens, best.keepLogits});
  for (size_t i = 0; i < tiled.size(); ++i) {
    if (!fitting.empty() && isUnnoticed(sparedWithoutWork(fitting[0]), fitting[0])) break;
    std::vector<Trials::Part> next;
    for (Tiling later : ArrayRef(tiled).drop_front(i))
      next.push_back([from = Forms(*this, trials), later](Trials &speculative) { Forms(from, speculative).chooseTiled(later); });
    if (tilesGainNothing(next)) break;
    trials.reached(0);
    if (!chooseTiled(tiled[i])) break;
  }
  for (int64_t tileParts : parts)
    if (best.keepLogits && fitting.empty() && tileParts > 1) chooseFormWith({tileParts, best.tokens, /*keepLogits=*/false});
  for (int64_t tileTokens : ArrayRef(tokens).drop_front()) {
    int64_t most = kMostTiles / int64_t(Tiling{1, tileTokens}.tiles(question.tokens));
    Tiling both{question.anyTiles ? std::min(parts.back(), most) : parts.back(), tileTokens};
    if (fitting.empty() && trials.least && trials.leastWith(both, *trials.least) <= trials.limit) chooseFormWith(both);
  }
  tryStateWithActivations();
  tryFetchingMasters();
}

/// In the form that looks best, masters come for each use in place of compute copies (zero-assign-tiers): where they are whole, and each
/// comes no more than twice in a step.
void Forms::tryFetchingMasters() {
  if (!question.anyMasters || fitting.empty() || fitting[0].copied == 0) return;
  const shard::PartitionPassOptions &best = fitting[0].settings.shard.partition;
  if ((best.world > 1 && best.stage > 0) || (best.accumulate > 1 && !best.vertical)) return;
  asked.shard.partition = best;
  setTiling(fitting[0].settings.tiling);
  tiers().chooseFetchingMasters(Trial(fitting[0]));
  llvm::stable_sort(fitting, faster);
}

/// In the form that looks best, activations leave together with state, though the parameters stay on the device without that: gradients
/// that wait for the norm leave with activations, so that less of the optimizer's state has to. In one form alone, since it takes time.
void Forms::tryStateWithActivations() {
  if (fitting.empty() || fitting[0].copied == 0 || fitting[0].settings.keepBytes || fitting[0].offloadsParameters()) return;
  asked.shard.partition = fitting[0].settings.shard.partition;
  setTiling(fitting[0].settings.tiling);
  tiers().chooseStateWithActivations();
  llvm::stable_sort(fitting, faster);
}

/// chooseFormWith parts of parameters, with logits that are kept or made again.
bool Forms::chooseTiled(Tiling tiled) {
  bool known = !fitting.empty() && fitting[0].settings.tiling.parts > 1 && fitting[0].settings.tiling.keepLogits; // that this is faster
  if (!chooseFormWith(tiled)) return false;
  if (!known) makeLargeLogitsAgain(tiled);
  return true;
}

/// The best that fits copies nothing, or its copies hide behind computation but for a percent, placed as well, and nothing is made again:
/// tiles, which compute no less, could not be faster. `next`: what is tried else, found out ahead meanwhile.
bool Forms::tilesGainNothing(const std::vector<Trials::Part> &next) {
  bool keepsAll = !fitting.empty() && !fitting[0].settings.keepBytes;
  if (keepsAll && fitting[0].copied == 0) return true;
  trials.speculate(next);
  bool nothing = keepsAll && Refine(trials, budgets).hides(fitting[0]);
  if (nothing) trials.speculate({});
  return nothing;
}

/// chooseFormWith these tiles, but logits made again, if those take more than the gradient of the weights that make them: else keeping
/// them needs no more memory. Not where to compute that alone takes longer than all of a step that fits.
void Forms::makeLargeLogitsAgain(Tiling tiling) {
  if (!keepsLargeLogits(tiling)) return;
  tiling.keepLogits = false;
  Settings again = tiers().onDevice();
  again.tiling = tiling, again.schedule.activationWork = 0;
  if (!fitting.empty() && trials.timed(trials.probe(again)).time.of(simulate::kProcessors) >= fitting[0].time.seconds) return;
  chooseFormWith(tiling);
}

/// chooseForm with other tiles, which `asked` has then. Where nothing fits so far, the choice that needs least of the device is tried
/// with them first, and what is sparing as a rule if that needs no less; nothing else if neither fits: false if neither needs less. False
/// too if all tiers have no room for the state.
bool Forms::chooseFormWith(Tiling tiling) {
  if (fitting.empty() && trials.leastState > room()) return false;
  const Tiling before = asked.tiling;
  setTiling(tiling);
  if (fitting.empty() && trials.least && trials.least->need.of(Tier::device) > trials.limit) {
    uint64_t need = trials.least->need.of(Tier::device);
    Settings least = trials.least->settings;
    least.tiling = tiling, least.schedule.activationWork = asked.schedule.activationWork;
    uint64_t now = needed(least, need);
    for (const Settings &settings : mostSparing(stages()))
      if (now >= need) now = needed(settings, need);
    if (now >= need) return setTiling(before), false;
    if (now > trials.limit) return true;
  }
  bool hopeless = llvm::all_of(mostSparing(stages()), [&](const Settings &settings) { return isFar(trials.needsAtLeast(settings)); });
  if (!hopeless) chooseForm();
  return true;
}

/// What these need of the device, or `enough` if that is known to be no more.
uint64_t Forms::needed(const Settings &settings, uint64_t enough) {
  return trials.needsAtLeast(settings) >= enough ? enough : trials.made(settings).need.of(Tier::device);
}

/// Adds to `fitting` what fits with these tiles.
void Forms::chooseForm() {
  std::vector<int64_t> stages = this->stages();
  std::vector<bool> orders{question.asked.shard.partition.vertical};
  if (question.anyOrder) orders = {false, true};
  asked.shard.partition.stage = stages[0];
  asked.shard.partition.vertical = orders[0];
  if (fitting.empty() && !trials.fits(trials.attempt(tiers().onDevice())) && areHopeless(stages)) return;
  for (int64_t stage : stages)
    for (bool vertical : orders) {
      asked.shard.partition.stage = stage;
      asked.shard.partition.vertical = vertical;
      bool &diskUpdates = asked.shard.tiers.diskUpdates;
      size_t before = fitting.size();
      tiers().choose();
      if (!diskUpdates || fitting.size() > before) continue;
      diskUpdates = false; // the host has no room for what updates of state on disk hold there
      tiers().choose();
      diskUpdates = true;
    }
  llvm::stable_sort(fitting, faster);
}

/// Whether nothing fits in any of these stages, by far: not even where nothing rests on the device that may lie elsewhere, and everything
/// comes when its turn comes. That is one choice for each stage, in place of all that there are.
bool Forms::areHopeless(ArrayRef<int64_t> stages) {
  std::vector<Settings> sparing = mostSparing(stages);
  if (llvm::any_of(sparing, [&](const Settings &settings) { return !isFar(trials.probe(settings).need.of(Tier::device)); })) return false;
  for (const Settings &settings : sparing) trials.made(settings); // the refusal is about one of them
  return true;
}

/// What needs least of the device in each of these stages, as a rule.
std::vector<Settings> Forms::mostSparing(ArrayRef<int64_t> stages) {
  std::vector<Settings> sparing;
  for (int64_t stage : llvm::reverse(stages)) { // the higher, the fewer steps
    asked.shard.partition.stage = stage;
    sparing.push_back(tiers().mostSparing(/*makesAgain=*/false));
    if (question.anyRecomputation && sparing.size() == 1) sparing.push_back(tiers().mostSparing(/*makesAgain=*/true));
  }
  return sparing;
}

/// Only large logits may leave for few but long steps.
void Forms::setTiling(Tiling tiling) {
  asked.tiling = tiling, asked.schedule.activationWork = workFor(tiling);
  asked.shard.merges.distance = mergeDistance(tiling);
}

int64_t Forms::workFor(Tiling tiling) { return keepsLargeLogits(tiling) ? question.asked.schedule.activationWork : 0; }

bool Forms::keepsLargeLogits(Tiling tiling) {
  if (!tiling.keepLogits || tiling.parts == 1 || trials.broken) return false;
  ModuleOp module = fewLayers(tiling); // its logits are the same
  if (!module) module = modules(tiling);
  return module && train::keepsLargeLogits(module);
}

std::vector<int64_t> Forms::stages() const {
  if (question.anyStage && asked.shard.partition.world > 1) return {0, 1, 2, 3};
  return {question.asked.shard.partition.stage};
}

/// Bytes for model state in all tiers together.
uint64_t Forms::room() const {
  const auto &tiers = asked.shard.tiers;
  bool host = budgets.host || tiers.offloadParams == "host" || tiers.offloadOptimizer == "host"; // else nothing lies there
  uint64_t sum = *budgets.device;
  for (uint64_t bytes : {host ? budgets.host.value_or(UINT64_MAX) : 0, budgets.disk.value_or(UINT64_MAX)})
    sum = llvm::SaturatingAdd(sum, bytes);
  return sum;
}

std::vector<Trial> Forms::candidates() const {
  std::vector<Trial> chosen;
  std::map<std::tuple<Tiling, bool, bool>, int> seen; // what is made again, or rounded, differs most by what sharing bytes costs
  for (const Trial &trial : fitting)
    if (seen[{trial.settings.tiling, trial.settings.keepBytes.has_value(), trial.settings.shard.tiers.fetchMasters}]++ < 2)
      chosen.push_back(trial);
  return chosen;
}

Settings Forms::onDevice(const Settings &chosen) {
  asked = chosen;
  asked.keepBytes = question.asked.keepBytes;
  asked.shard.tiers = question.asked.shard.tiers, asked.schedule = question.asked.schedule;
  setTiling(asked.tiling);
  return tiers().onDevice();
}

} // namespace zero::pipeline

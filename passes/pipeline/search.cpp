//===- search.cpp - the fastest plan that keeps the budgets -----------------------------------------===//
#include "passes/pipeline/ahead.h"
#include "passes/pipeline/refine.h"
#include "passes/pipeline/sharing_cost.h"
#include "passes/pipeline/tiers.h"
#include "passes/train/Passes.h"
#include <map>

using namespace mlir;

namespace zero::pipeline {

namespace {

using state::Tier;

constexpr unsigned kMostThreads = 4; // what may be done at a time is a few chains of choices

class Search {
public:
  Search(const Modules &modules, const Modules &fewLayers, const Question &question, Evaluations &evaluations, Ahead *ahead)
      : question(question), budgets(question.budgets), modules(modules), fewLayers(fewLayers), evaluations(evaluations), ahead(ahead),
        asked(question.asked), trials(evaluations, fewLayers, question), refine(trials, budgets) {}
  /// Goes on from `other` by itself, ahead of it.
  Search(const Search &other, const std::atomic<bool> &stop)
      : question(other.question), budgets(other.budgets), modules(other.modules), fewLayers(other.fewLayers),
        evaluations(other.evaluations), asked(other.asked), trials(other.trials, stop), refine(trials, budgets), fitting(other.fitting),
        sharing(other.sharing) {}

  FailureOr<Found> run() {
    // What sharing bytes adds, to the memory and to the waits, shows only when it is tried. It differs from choice to choice: where the one
    // that looks best does not stay within the budget, another round leaves more room for it.
    std::vector<Trial> kept;
    for (int round = 0; round < (kept.empty() ? kRounds : 2); ++round) {
      fitting.clear(), trials.least.reset();
      choose();
      if (fitting.empty()) break;
      std::vector<Trial> placed;
      const std::vector<Trial> chosen = candidates();
      std::vector<Part> next;
      for (const Trial &trial : ArrayRef(chosen).drop_front())
        next.push_back([trial, kept](Search &search) { search.refine.place(search.refine.gather(trial).settings, kept); });
      lookAhead(next);
      for (const auto &[i, trial] : llvm::enumerate(chosen)) {
        if (i > 0) reached(i - 1);
        Trial expected = sharing.expected(trial);
        bool maybeFastest = llvm::none_of(kept, [&](const Trial &other) { return faster(other, expected); });
        if (kept.size() >= 2 && !maybeFastest) continue; // one that may be the runner-up is placed as well
        Trial apart = refine.gather(trial);
        placed.push_back(refine.place(apart.settings, kept));
        sharing.learn(apart, placed.back());
        if (trials.keeps(placed.back())) kept.push_back(placed.back());
      }
      llvm::stable_sort(placed, faster);
      if (placed.empty() || trials.keeps(placed[0])) break;
      uint64_t need = std::max(placed[0].need.of(Tier::device), *budgets.device);
      trials.limit -= std::min(trials.limit, need - *budgets.device + uint64_t(round) * trials.limit / 64);
    }
    if (kept.empty()) placeLeast(kept);
    if (trials.broken) return failure();
    Found found = decide(kept);
    found.steps = trials.steps;
    return found;
  }

private:
  static constexpr int kRounds = 6;            // of placing
  static constexpr double kLike = 1.03;        // how much longer a step may take that is worth to be refined as well
  static constexpr int64_t kFewestTokens = 64; // of a micro-step that is worth tiles
  static constexpr int64_t kMostTiles = 64;    // of both kinds together: planning takes time with their number

  /// The choice that needs least is one that a refusal speaks of: with as many bytes as that names, this is what fits.
  void placeLeast(std::vector<Trial> &kept) {
    if (trials.broken) return;
    Settings least = trials.leastOfAll().settings;
    for (const Settings &settings : {least, inTurn(least)}) {
      if (!kept.empty() || !trials.keeps(trials.made(settings))) continue;
      if (Trial placed = refine.place(settings); trials.keeps(placed)) kept.push_back(placed);
    }
  }

  /// Of those that are placed and keep the budget.
  Found decide(std::vector<Trial> &kept) {
    Found found;
    llvm::stable_sort(kept, faster);
    found.fits = !kept.empty();
    found.chosen = found.fits ? overlap(kept) : trials.leastOfAll();
    for (const Trial &trial : kept)
      if (!found.runnerUp && keyOf(trial.settings, true) != keyOf(found.chosen.settings, true)) found.runnerUp = trial;
    found.tried = trials.tried;
    if (found.fits) found.placed = trials.takeFastest();
    if (!trials.keeps(found.chosen)) return found; // nobody asks what else it would be
    asked = found.chosen.settings;
    asked.keepBytes = question.asked.keepBytes;
    asked.shard.tiers = question.asked.shard.tiers, asked.schedule = question.asked.schedule;
    setTiling(asked.tiling);
    found.resident = trials.made(tiers().onDevice()).need.of(Tier::device);
    found.leastCopied = leastCopied();
    return found;
  }

  /// The fastest once lanes run apart and updates are late, which make about as much of one tiling as of another.
  Trial overlap(ArrayRef<Trial> kept) {
    std::vector<Trial> alike{kept[0]};
    for (const Trial &trial : kept)
      if (alike.size() < 2 && trial.settings.tiling != kept[0].settings.tiling && trial.time.seconds <= kLike * kept[0].time.seconds)
        alike.push_back(trial);
    std::vector<Part> next;
    for (const Trial &trial : ArrayRef(alike).drop_front()) next.push_back([trial](Search &search) { search.refine.overlap(trial); });
    lookAhead(next);
    Trial best = refine.overlap(alike[0]);
    if (alike.size() == 1) return best;
    reached(0);
    Trial other = refine.overlap(alike[1]);
    return faster(other, best) ? other : best;
  }

  /// Fills `fitting`, the best first. Where nothing fits, or tiles may be faster, a quarter of the tokens is done at a time, and where
  /// still nothing fits, a sixteenth. Then, with so many, there are more parts; where logits take more than the gradient that would wait in
  /// their place, they are kept or made again, and else made again if nothing fits that keeps them. That nothing fits is to be known soon:
  /// tiles are given up that do not bring down what is needed at least; both kinds together are tried at last.
  void choose() {
    std::vector<int64_t> parts{question.asked.tiling.parts}, tokens{question.asked.tiling.tokens};
    if (question.anyTiles) parts = {1, 4, 8, 16};
    if (question.anyTokens) tokens = {0};
    if (question.anyTokens && question.tokens >= kFewestTokens) tokens = {0, (question.tokens + 3) / 4, (question.tokens + 15) / 16};
    setTiling(question.asked.tiling);
    chooseForm();
    makeLargeLogitsAgain(asked.tiling);
    for (int64_t tileTokens : ArrayRef(tokens).drop_front()) {
      if (!fitting.empty() && (tilesGainNothing() || asked.tiling.tokens)) break;
      if (!chooseFormWith({asked.tiling.parts, tileTokens})) break;
    }
    if (!fitting.empty()) setTiling(fitting[0].settings.tiling);
    const Tiling best = asked.tiling;
    std::vector<Tiling> tiled;
    for (int64_t tileParts : ArrayRef(parts).drop_front()) tiled.push_back({tileParts, best.tokens, best.keepLogits});
    for (size_t i = 0; i < tiled.size() && !tilesGainNothing(); ++i) {
      std::vector<Part> next;
      for (Tiling later : ArrayRef(tiled).drop_front(i + 1)) next.push_back([later](Search &search) { search.chooseTiled(later); });
      lookAhead(next);
      if (!chooseTiled(tiled[i])) break;
    }
    for (int64_t tileParts : parts)
      if (best.keepLogits && fitting.empty() && tileParts > 1) chooseFormWith({tileParts, best.tokens, /*keepLogits=*/false});
    for (int64_t tileTokens : ArrayRef(tokens).drop_front()) {
      Tiling both{std::min<int64_t>(parts.back(), kMostTiles / int64_t(Tiling{1, tileTokens}.tiles(question.tokens))), tileTokens};
      if (fitting.empty() && trials.least && leastWith(both) <= trials.limit) chooseFormWith(both);
    }
  }

  /// chooseFormWith parts of parameters, with logits that are kept or made again.
  bool chooseTiled(Tiling tiled) {
    bool known = !fitting.empty() && fitting[0].settings.tiling.parts > 1 && fitting[0].settings.tiling.keepLogits; // that this is faster
    if (!chooseFormWith(tiled)) return false;
    if (!known) makeLargeLogitsAgain(tiled);
    return true;
  }

  /// What the search comes to later is begun ahead, each part from where it stands now.
  using Part = std::function<void(Search &)>;
  void lookAhead(const std::vector<Part> &parts) {
    if (!ahead || !ahead->any() || parts.empty()) return;
    evaluations.dropModules();
    std::vector<Ahead::Work> works;
    for (const Part &part : parts) {
      auto stop = std::make_shared<std::atomic<bool>>(false);
      works.push_back({stop, [search = std::make_shared<Search>(*this, *stop), part] { part(*search); }});
    }
    ahead->begin(std::move(works));
  }
  /// It does this part itself now.
  void reached(size_t part) {
    if (ahead) ahead->reached(part);
  }

  /// The best that fits copies nothing, or its copies hide behind computation but for a percent, placed as well, and nothing is made again:
  /// tiles, which compute no less, could not be faster.
  bool tilesGainNothing() {
    if (fitting.empty()) return false;
    Trial best = fitting[0];
    auto hides = [](const Trial &trial) { return trial.time.seconds <= 1.01 * trial.time.of(simulate::kProcessors); };
    if (best.copied == 0) return true;
    if (best.settings.keepBytes || !hides(best)) return false;
    // What comes next then.
    lookAhead({[best](Search &search) { search.refine.overlap(search.refine.place(search.refine.gather(best).settings)); }});
    Trial placed = refine.place(best.settings);
    return trials.keeps(placed) && (hides(placed) || hides(refine.leaveRoom(placed)));
  }

  /// chooseFormWith these tiles, but logits made again, if those take more than the gradient of the weights that make them: else keeping
  /// them needs no more memory. Not where to compute that alone takes longer than all of a step that fits.
  void makeLargeLogitsAgain(Tiling tiling) {
    if (!keepsLargeLogits(tiling)) return;
    tiling.keepLogits = false;
    Settings again = tiers().onDevice();
    again.tiling = tiling, again.schedule.activationWork = 0;
    if (!fitting.empty() && trials.timed(trials.probe(again)).time.of(simulate::kProcessors) >= fitting[0].time.seconds) return;
    chooseFormWith(tiling);
  }

  /// The two of `fitting` that look best with every number of tiles: what sharing bytes costs differs most between these.
  std::vector<Trial> candidates() const {
    std::vector<Trial> chosen;
    std::map<Tiling, int> seen;
    for (const Trial &trial : fitting)
      if (seen[trial.settings.tiling]++ < 2) chosen.push_back(trial);
    return chosen;
  }

  /// chooseForm with other tiles, which `asked` has then. Where nothing fits so far, the choice that needs least of the device is tried
  /// with them first, and nothing else if it does not fit: false if it needs no less. False too if all tiers have no room for the state.
  bool chooseFormWith(Tiling tiling) {
    if (fitting.empty() && trials.leastState > room()) return false;
    if (fitting.empty() && trials.least && trials.least->need.of(Tier::device) > trials.limit) {
      uint64_t need = trials.least->need.of(Tier::device);
      Settings settings = trials.least->settings;
      settings.tiling = tiling, settings.schedule.activationWork = workFor(tiling);
      if (trials.needsAtLeast(settings) >= need) return false;
      uint64_t now = trials.made(settings).need.of(Tier::device);
      if (now >= need) return false;
      setTiling(tiling);
      if (now > trials.limit) return true;
    }
    setTiling(tiling);
    bool hopeless = llvm::all_of(mostSparing(stages()), [&](const Settings &settings) { return isFar(trials.needsAtLeast(settings)); });
    if (!hopeless) chooseForm();
    return true;
  }

  /// Only large logits may leave for few but long steps.
  void setTiling(Tiling tiling) { asked.tiling = tiling, asked.schedule.activationWork = workFor(tiling); }
  int64_t workFor(Tiling tiling) { return keepsLargeLogits(tiling) ? question.asked.schedule.activationWork : 0; }
  bool keepsLargeLogits(Tiling tiling) {
    if (!tiling.keepLogits || tiling.parts == 1 || trials.broken) return false;
    ModuleOp module = fewLayers(tiling); // its logits are the same
    if (!module) module = modules(tiling);
    return module && train::keepsLargeLogits(module);
  }

  /// Bytes of the device without which nothing fits.
  uint64_t leastWith(Tiling tiling) const { return trials.leastWith(tiling, *trials.least); }

  /// Bytes for model state in all tiers together.
  uint64_t room() const {
    const auto &tiers = asked.shard.tiers;
    bool host = budgets.host || tiers.offloadParams == "host" || tiers.offloadOptimizer == "host"; // else nothing lies there
    uint64_t sum = *budgets.device;
    for (uint64_t bytes : {host ? budgets.host.value_or(UINT64_MAX) : 0, budgets.disk.value_or(UINT64_MAX)})
      sum = llvm::SaturatingAdd(sum, bytes);
    return sum;
  }

  Tiers tiers() { return {trials, question, asked, fitting}; }

  std::vector<int64_t> stages() const {
    if (question.anyStage && asked.shard.partition.world > 1) return {0, 1, 2, 3};
    return {question.asked.shard.partition.stage};
  }

  /// Adds to `fitting` what fits with these tiles.
  void chooseForm() {
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
  bool areHopeless(ArrayRef<int64_t> stages) {
    std::vector<Settings> sparing = mostSparing(stages);
    if (llvm::any_of(sparing, [&](const Settings &settings) { return !isFar(trials.probe(settings).need.of(Tier::device)); })) return false;
    for (const Settings &settings : sparing) trials.made(settings); // the refusal is about one of them
    return true;
  }

  /// What needs least of the device in each of these stages, as a rule.
  std::vector<Settings> mostSparing(ArrayRef<int64_t> stages) {
    std::vector<Settings> sparing;
    for (int64_t stage : llvm::reverse(stages)) { // the higher, the fewer steps
      asked.shard.partition.stage = stage;
      sparing.push_back(tiers().mostSparing(/*makesAgain=*/false));
      if (question.anyRecomputation && sparing.size() == 1) sparing.push_back(tiers().mostSparing(/*makesAgain=*/true));
    }
    return sparing;
  }
  bool isFar(uint64_t need) const { return need > llvm::SaturatingAdd(trials.limit, trials.limit / 4); }

  /// Of every form that was tried with all on the device: what is too much must leave, those first that are copied least for each byte.
  /// What programs work on is copied away and back.
  uint64_t leastCopied() const {
    const shard::AssignTiersPassOptions &tiers = question.asked.shard.tiers;
    if (tiers.hostUpdates && (budgets.host || tiers.offloadOptimizer == "host" || tiers.diskUpdates))
      return 0;                   // a gradient goes in place of what it updates
    std::optional<int64_t> least; // none if flags let something leave in any case
    for (const Trial &trial : trials.resident()) {
      auto removals = trial.removals;
      auto work = int64_t(trial.need.work[size_t(Tier::device)]), need = int64_t(trial.need.of(Tier::device));
      removals.push_back({work, 2 * work});
      int64_t copied = shard::leastTraffic(removals, need - int64_t(std::min<uint64_t>(*budgets.device, INT64_MAX)));
      least = std::min(least.value_or(copied), copied);
    }
    return uint64_t(least.value_or(0));
  }

  const Question &question;
  const Budgets &budgets;
  const Modules &modules, &fewLayers;
  Evaluations &evaluations;
  Ahead *ahead = nullptr; // null: this is ahead of another
  Settings asked;         // with the form that is tried
  Trials trials;
  Refine refine;
  std::vector<Trial> fitting;
  SharingCost sharing;
};

} // namespace

FailureOr<Found> search(const Modules &modules, const Modules &fewLayers, const Question &question, unsigned threads) {
  Evaluations evaluations(modules, question);
  Ahead ahead(std::min(threads, kMostThreads) - 1);
  return Search(modules, fewLayers, question, evaluations, &ahead).run();
}

} // namespace zero::pipeline

//===- search.cpp - the fastest plan that keeps the budgets -----------------------------------------===//
#include "passes/pipeline/forms.h"
#include "passes/pipeline/refine.h"
#include "passes/pipeline/sharing_cost.h"
#include "passes/pipeline/speculation.h"

using namespace mlir;

namespace zero::pipeline {

namespace {

using state::Tier;

constexpr unsigned kMostThreads = 4; // what may be found out at a time is a few chains of choices

class Search {
public:
  Search(const Modules &modules, const Modules &fewLayers, const Question &question, Evaluations &evaluations, Speculation &speculation)
      : question(question), budgets(question.budgets), trials(evaluations, fewLayers, question, speculation), refine(trials, budgets),
        forms(trials, question, modules, fewLayers) {}

  FailureOr<Found> run() {
    // What sharing bytes adds, to the memory and to the waits, shows only when it is tried. It differs from choice to choice: where the one
    // that looks best does not stay within the budget, another round leaves more room for it.
    std::vector<Trial> kept;
    for (int round = 0; round < (kept.empty() ? kRounds : 2); ++round) {
      trials.least.reset();
      forms.choose();
      std::vector<Trial> placed = place(forms.candidates(), kept);
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
  static constexpr int kRounds = 6;          // of placing
  static constexpr double kNearLeast = 1.05; // times its busiest resource: in a step that takes no longer hardly anything waits for copies
  /// Worth to be refined as well.
  static bool isLike(const Trial &trial, const Trial &best) { return trial.time.seconds <= 1.03 * best.time.seconds; }

  /// Places those that may become the fastest, or the next; returns them, the best first, and adds to `kept` what keeps the budget.
  std::vector<Trial> place(ArrayRef<Trial> candidates, std::vector<Trial> &kept) {
    std::vector<Trials::Part> next;
    for (const Trial &trial : candidates.drop_front(!candidates.empty()))
      next.push_back([trial, kept, &budgets = budgets](Trials &speculative) {
        Refine refine(speculative, budgets);
        refine.place(refine.gather(trial).settings, kept);
      });
    trials.speculate(next);
    std::vector<Trial> placed;
    for (const auto &[i, trial] : llvm::enumerate(candidates)) {
      if (i > 0) trials.reached(i - 1);
      Trial expected = sharing.expected(trial);
      bool maybeFastest = llvm::none_of(kept, [&](const Trial &other) { return faster(other, expected); });
      if (kept.size() >= 2 && !maybeFastest) continue;
      Trial apart = refine.gather(trial);
      placed.push_back(refine.place(apart.settings, kept));
      sharing.learn(apart, placed.back());
      // Room that was left may have been spent on gathered buckets, and then be missing where buffers share bytes.
      if (!trials.keeps(placed.back()) && keyOf(apart.settings, false) != keyOf(trial.settings, false))
        placed.push_back(refine.place(trial.settings, kept));
      if (trials.keeps(placed.back())) kept.push_back(placed.back());
    }
    llvm::stable_sort(placed, faster);
    return placed;
  }

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
    if (found.fits && !trials.broken) found.chosen = trials.fastestPlaced(); // which is written
    for (const Trial &trial : kept)
      if (!found.runnerUp && keyOf(trial.settings, true) != keyOf(found.chosen.settings, true)) found.runnerUp = trial;
    found.tried = trials.tried;
    if (found.fits) found.placed = trials.takeFastest();
    if (!trials.keeps(found.chosen)) return found; // nobody asks what else it would be
    found.resident = trials.made(forms.onDevice(found.chosen.settings)).need.of(Tier::device);
    found.leastCopied = std::min(leastCopied(), found.chosen.copied);
    return found;
  }

  /// The fastest once lanes run apart and updates are late. That gains about as much with one tiling as with another, and with one choice
  /// of what leaves as with another, but most where sharing bytes costs most.
  Trial overlap(ArrayRef<Trial> kept) {
    const Trial &first = kept[0];
    SmallVector<Trial, 2> others;
    auto add = [&](const Trial *trial) {
      auto isThat = [&](const Trial &other) { return keyOf(other.settings, true) == keyOf(trial->settings, true); };
      if (trial != kept.end() && !isThat(first) && llvm::none_of(others, isThat)) others.push_back(*trial);
    };
    add(llvm::find_if(kept, [&](const Trial &trial) { return trial.settings.tiling != first.settings.tiling && isLike(trial, first); }));
    if (first.time.seconds > kNearLeast * first.time.least()) add(mostPromising(kept.drop_front()));
    std::vector<Trials::Part> next{[first, &budgets = budgets](Trials &speculative) {
      Refine refine(speculative, budgets);
      if (std::optional<Trial> spread = refine.spread(first)) refine.overlap(*spread);
    }};
    for (const Trial &other : others)
      next.push_back([other, &budgets = budgets](Trials &speculative) { Refine(speculative, budgets).overlap(other); });
    trials.speculate(next);
    Trial best = refine.overlap(first);
    trials.reached(0);
    if (best.time.seconds > kNearLeast * best.time.least())
      if (std::optional<Trial> spread = refine.spread(first); spread && isLike(*spread, best))
        best = std::min(best, refine.overlap(*spread), faster);
    for (const auto &[i, other] : llvm::enumerate(others)) {
      trials.reached(i + 1);
      if (apartSeconds(other) < best.time.seconds) best = std::min(best, refine.overlap(other), faster);
    }
    return best;
  }

  /// What no overlap goes below: where buffers share no bytes.
  double apartSeconds(const Trial &trial) { return trials.timed(trials.attempt(trial.settings)).time.seconds; }

  /// The fastest if half of what sharing bytes costs is gained by that.
  const Trial *mostPromising(ArrayRef<Trial> kept) {
    auto hoped = [&](const Trial &trial) { return trial.time.seconds + apartSeconds(trial); };
    return std::min_element(kept.begin(), kept.end(), [&](const Trial &a, const Trial &b) { return hoped(a) < hoped(b); });
  }

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
  Trials trials;
  Refine refine;
  Forms forms;
  SharingCost sharing;
};

/// Bytes of all tiers beyond their budgets.
uint64_t excess(const place::Need &need, const Budgets &budgets) {
  uint64_t sum = 0;
  for (auto [tier, budget] : {std::pair(Tier::device, budgets.device), {Tier::host, budgets.host}, {Tier::disk, budgets.disk}})
    sum += need.of(tier) - std::min(need.of(tier), budget.value_or(UINT64_MAX));
  return sum;
}

/// The same with room for anything on the host, on disk and on both, as far as their budgets are named.
std::vector<Question> withRoomElsewhere(const Question &question) {
  constexpr uint64_t kAny = uint64_t(1) << 60;
  std::vector<Question> wider;
  for (auto [host, disk] : {std::pair(true, false), {false, true}, {true, true}}) {
    if ((host && !question.budgets.host) || (disk && !question.budgets.disk)) continue;
    Question &with = wider.emplace_back(question);
    if (host) with.budgets.host = kAny;
    if (disk) with.budgets.disk = kAny;
  }
  return wider;
}

} // namespace

FailureOr<Found> search(const Modules &modules, const Modules &fewLayers, const Question &question, unsigned threads) {
  const std::vector<Question> wider = withRoomElsewhere(question); // outlives what is tried ahead
  Evaluations evaluations(modules, question);
  Speculation speculation(std::min(threads, kMostThreads) - 1);
  auto foundFor = [&](const Question &asked) { return Search(modules, fewLayers, asked, evaluations, speculation).run(); };
  FailureOr<Found> found = foundFor(question);
  // What else does not fit where the device has room enough: what would be chosen if other tiers had any, too. That does not depend on
  // their budgets, so it is what a budget of as many bytes as a refusal names is enough for.
  bool isForDevice = failed(found) || found->fits || found->chosen.need.of(Tier::device) > *question.budgets.device;
  uint64_t least = UINT64_MAX;
  for (const Question &with : isForDevice ? ArrayRef<Question>() : ArrayRef(wider)) {
    if (least == 0) break;
    FailureOr<Found> other = foundFor(with);
    if (failed(other)) return failure();
    other->tried += found->tried, other->steps += found->steps;
    uint64_t bytes = excess(other->chosen.need, question.budgets);
    if (other->fits && bytes < least) std::swap(*found, *other), least = bytes;
    found->tried = std::max(found->tried, other->tried), found->steps = std::max(found->steps, other->steps);
    found->fits = least == 0;
  }
  evaluations.end(); // what is still tried ahead is for nobody
  return found;
}

} // namespace zero::pipeline

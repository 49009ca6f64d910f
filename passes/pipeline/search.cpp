//===- search.cpp - the fastest plan that keeps the budgets -----------------------------------------===//
#include "passes/pipeline/search.h"
#include "passes/pipeline/try_out.h"
#include <cmath>
#include <map>
#include <numeric>
#include <set>

using namespace mlir;

namespace zero::pipeline {

namespace {

using state::Tier;

class Search {
public:
  Search(const Modules &modules, const Question &question)
      : modules(modules), question(question), budgets(question.budgets), asked(question.asked), limit(budgets.device.value_or(UINT64_MAX)) {
  }

  FailureOr<Found> run() {
    // What sharing bytes adds, to the memory and to the waits, shows only when it is tried. It differs from choice to choice: where the one
    // that looks best does not stay within the budget, another round leaves more room for it.
    std::vector<Trial> kept;
    for (int round = 0; round < (kept.empty() ? kRounds : 2); ++round) {
      fitting.clear(), least.reset();
      choose();
      if (fitting.empty()) break;
      std::vector<Trial> placed;
      for (const Trial &trial : candidates()) placed.push_back(attempt(reduceLonger(keepGathered(trial)).settings, /*places=*/true));
      llvm::stable_sort(placed, faster);
      llvm::copy_if(placed, std::back_inserter(kept), [&](const Trial &trial) { return keeps(trial); });
      if (keeps(placed[0])) break;
      uint64_t need = placed[0].need.of(Tier::device);
      limit -= std::min(limit, need - *budgets.device + uint64_t(round) * limit / 64);
    }
    if (broken) return failure();
    Found found;
    llvm::stable_sort(kept, faster);
    found.fits = !kept.empty();
    found.chosen = found.fits ? leaveRoom(kept[0]) : leastOfAll();
    for (const Trial &trial : kept)
      if (!found.runnerUp && keyOf(trial.settings, true) != keyOf(found.chosen.settings, true)) found.runnerUp = trial;
    found.tried = tried;
    if (found.fits) found.placed = std::move(fastest);
    if (!keeps(found.chosen)) return found; // nobody asks what else it would be
    asked = found.chosen.settings;
    asked.keepBytes = question.asked.keepBytes;
    asked.shard.tiers = question.asked.shard.tiers, asked.schedule = question.asked.schedule;
    found.resident = attempt(onDevice()).need.of(Tier::device);
    found.leastCopied = leastCopied();
    return found;
  }

private:
  static constexpr int kRounds = 6, kSizes = 4; // of placing, and of trying how much fits
  static constexpr int64_t kFewestTokens = 64;  // of a micro-step that is worth tiles
  static constexpr int64_t kMostTiles = 64;     // of both kinds together: planning takes time with their number

  //===--------------------------------------------------------------------===//
  // One choice
  //===--------------------------------------------------------------------===//

  /// What distinguishes choices.
  using Key = std::tuple<std::optional<uint64_t>, Tiling, int64_t, bool, int64_t, int64_t, std::string, int64_t, int64_t, int64_t, int64_t,
                         int64_t, bool>;
  static Key keyOf(const Settings &settings, bool places) {
    const shard::AssignTiersPassOptions &tiers = settings.shard.tiers;
    const schedule::Options &schedule = settings.schedule;
    return {settings.keepBytes,
            settings.tiling(),
            settings.shard.partition.stage,
            settings.shard.partition.vertical,
            tiers.deviceBytes,
            tiers.hostBytes,
            schedule.activations,
            schedule.activationBytes,
            schedule.ahead,
            schedule.fetchAhead,
            schedule.residentBytes,
            schedule.delay,
            places};
  }

  /// A choice that was tried out, and whether it was one of those between which is chosen, which are told.
  struct Tried {
    Trial trial;
    bool counts = false;
  };

  /// Where a pass fails, and says why, the choice does not fit. Another round finds those it has tried before.
  Tried &triedOut(const Settings &settings, bool places = false) {
    auto [known, fresh] = trials.try_emplace(keyOf(settings, places));
    auto &[trial, counts] = known->second;
    if (!fresh) return known->second;
    trial.settings = settings;
    trial.need.state[0] = UINT64_MAX;
    ModuleOp fused = broken ? ModuleOp() : modules(settings.tiling());
    FailureOr<TriedOut> result = failure();
    if (fused) result = tryOut(fused, settings, question, places, [&](const Trial &made) { return fits(made); });
    broken |= failed(result);
    if (broken) return known->second;
    trial = result->trial;
    if (places && keeps(trial) && (!fastest || rank(trial) < fastestRank)) {
      fastest = std::move(result->scheduled);
      fastestRank = rank(trial);
    }
    return known->second;
  }

  Trial attempt(const Settings &settings, bool places = false) {
    auto &[trial, counts] = triedOut(settings, places);
    if (!counts) ++tried;
    counts = true;
    leastState = std::min(leastState, std::accumulate(trial.need.state.begin(), trial.need.state.end(), uint64_t(0)));
    if (!broken && (!least || trial.need.of(Tier::device) < least->need.of(Tier::device))) least = trial;
    return trial;
  }

  /// Of the choices that need least of the device, the one that needs least of all tiers.
  Trial leastOfAll() const {
    auto need = [](const Trial &trial) {
      return std::pair(trial.need.of(Tier::device), trial.need.of(Tier::host) + trial.need.of(Tier::disk));
    };
    Trial found = *least;
    for (const auto &[key, other] : trials)
      if (other.counts && need(other.trial) < need(found)) found = other.trial;
    return found;
  }

  /// What is placed. What is not has at least the live bytes that are counted.
  bool keeps(const Trial &trial) const { return trial.need.of(Tier::device) <= *budgets.device; }

  bool fits(const Trial &trial) const {
    return trial.need.of(Tier::device) <= limit && trial.need.of(Tier::host) <= budgets.host.value_or(UINT64_MAX) &&
           trial.need.of(Tier::disk) <= budgets.disk.value_or(UINT64_MAX);
  }

  //===--------------------------------------------------------------------===//
  // From the choice that copies nothing to the one that needs least
  //===--------------------------------------------------------------------===//

  /// Fills `fitting`, the best first. Where nothing fits, or something is copied, a quarter of the tokens is done at a time, and where
  /// still nothing fits, a sixteenth. Then, with so many, there are more parts. That nothing fits is to be known soon: tiles are given up
  /// that do not bring down what is needed at least; both kinds together are tried at last.
  void choose() {
    std::vector<int64_t> parts{question.asked.tileParts}, tokens{question.asked.tileTokens};
    if (question.anyTiles) parts = {1, 4, 16};
    if (question.anyTokens) tokens = {0};
    if (question.anyTokens && question.tokens >= kFewestTokens) tokens = {0, (question.tokens + 3) / 4, (question.tokens + 15) / 16};
    std::tie(asked.tileParts, asked.tileTokens) = std::tie(parts[0], tokens[0]);
    chooseForm();
    for (int64_t tileTokens : ArrayRef(tokens).drop_front()) {
      if (!fitting.empty() && (fitting[0].copied == 0 || asked.tileTokens)) break;
      if (!chooseFormWith({asked.tileParts, tileTokens})) break;
    }
    if (!fitting.empty()) asked.tileTokens = fitting[0].settings.tileTokens;
    for (int64_t tileParts : ArrayRef(parts).drop_front()) {
      if (!fitting.empty() && fitting[0].copied == 0) break;
      if (!chooseFormWith({tileParts, asked.tileTokens})) break;
    }
    for (int64_t tileTokens : ArrayRef(tokens).drop_front()) {
      Tiling both{std::min<int64_t>(parts.back(), kMostTiles / int64_t(tilesOf({1, tileTokens}))), tileTokens};
      if (fitting.empty() && least && leastWith(both) <= limit) chooseFormWith(both);
    }
  }

  /// The two of `fitting` that look best, and the best with every number of tiles: what sharing bytes costs differs most between these.
  std::vector<Trial> candidates() const {
    std::vector<Trial> chosen;
    std::set<Tiling> seen;
    for (const auto &[i, trial] : llvm::enumerate(fitting))
      if (seen.insert(trial.settings.tiling()).second || i < 2) chosen.push_back(trial);
    return chosen;
  }

  /// chooseForm with other tiles, which `asked` has then. Where nothing fits so far, the choice that needs least of the device is tried
  /// with them first, and nothing else if it does not fit: false if it needs no less. False too if all tiers have no room for the state.
  bool chooseFormWith(Tiling tiling) {
    if (fitting.empty() && leastState > room()) return false;
    if (fitting.empty() && least && least->need.of(Tier::device) > limit) {
      uint64_t need = least->need.of(Tier::device);
      Settings settings = least->settings;
      std::tie(settings.tileParts, settings.tileTokens) = tiling;
      uint64_t now = attempt(settings).need.of(Tier::device);
      if (now >= need) return false;
      std::tie(asked.tileParts, asked.tileTokens) = tiling;
      if (now > limit) return true;
    }
    std::tie(asked.tileParts, asked.tileTokens) = tiling;
    chooseForm();
    return true;
  }

  /// Bytes of the device without which nothing fits: what is cut into so many tiles more takes at least that part of what it took.
  uint64_t leastWith(Tiling tiling) const { return least->need.of(Tier::device) / tilesOf(tiling) * tilesOf(least->settings.tiling()); }

  uint64_t tilesOf(Tiling tiling) const {
    auto [parts, tokens] = tiling;
    return uint64_t(parts) * uint64_t(tokens ? (question.tokens + tokens - 1) / tokens : 1);
  }

  /// Bytes for model state in all tiers together.
  uint64_t room() const {
    const auto &tiers = asked.shard.tiers;
    bool host = budgets.host || tiers.offloadParams == "host" || tiers.offloadOptimizer == "host"; // else nothing lies there
    uint64_t sum = *budgets.device;
    for (uint64_t bytes : {host ? budgets.host.value_or(UINT64_MAX) : 0, budgets.disk.value_or(UINT64_MAX)})
      sum = llvm::SaturatingAdd(sum, bytes);
    return sum;
  }

  /// Adds to `fitting` what fits with these tiles.
  void chooseForm() {
    std::vector<int64_t> stages{question.asked.shard.partition.stage};
    if (question.anyStage && asked.shard.partition.world > 1) stages = {0, 1, 2, 3};
    std::vector<bool> orders{question.asked.shard.partition.vertical};
    if (question.anyOrder) orders = {false, true};
    asked.shard.partition.stage = stages[0];
    asked.shard.partition.vertical = orders[0];
    if (fitting.empty() && !fits(attempt(onDevice())) && areHopeless(stages)) return;
    for (int64_t stage : stages)
      for (bool vertical : orders) {
        asked.shard.partition.stage = stage;
        asked.shard.partition.vertical = vertical;
        chooseTiers();
      }
    llvm::stable_sort(fitting, faster);
  }

  /// Whether nothing fits in any of these stages, by far: not even where nothing rests on the device that may lie elsewhere, and everything
  /// comes when its turn comes. That is one choice for each stage, in place of all that there are.
  bool areHopeless(ArrayRef<int64_t> stages) {
    std::vector<Settings> sparing;
    for (int64_t stage : llvm::reverse(stages)) { // the higher, the fewer steps
      asked.shard.partition.stage = stage;
      sparing.push_back(inTurn(isOpen(asked.schedule.activations) ? activationsAway() : onDevice()));
      if (question.anyRecomputation && sparing.size() == 1) sparing.push_back(inTurn(keepingLeast()));
      for (Settings &settings : sparing) {
        if (isOpen(asked.shard.tiers.offloadParams) || isOpen(asked.shard.tiers.offloadOptimizer)) settings.shard.tiers.deviceBytes = 0;
        if (triedOut(settings).trial.need.of(Tier::device) <= llvm::SaturatingAdd(limit, limit / 4)) return false;
      }
    }
    for (const Settings &settings : sparing) attempt(settings); // the refusal is about one of them
    return true;
  }

  /// What is better is less.
  using Rank = std::tuple<int64_t, int64_t, int64_t, int64_t, uint64_t, bool>;
  static Rank rank(const Trial &trial) {
    auto percents = int64_t(std::floor(std::log(std::max(trial.time.seconds, 1e-9)) / std::log(1.01)));
    int64_t tokens = trial.settings.tileTokens ? -trial.settings.tileTokens : INT64_MIN; // all of them are most
    return {percents,     trial.settings.tileParts,
            tokens,       trial.settings.shard.partition.stage,
            trial.copied, trial.settings.shard.partition.vertical};
  }
  static bool faster(const Trial &a, const Trial &b) { return rank(a) < rank(b); }

  /// Adds to `fitting` what fits with these parts and this stage.
  void chooseTiers() {
    Trial all = attempt(onDevice());
    if (fits(all)) return fitting.push_back(all);
    if (all.settings.shard.partition.world > 1 || gathers(all))
      if (auto later = gatherLater(onDevice())) return fitting.push_back(*later);

    bool state = isOpen(asked.shard.tiers.offloadParams) || isOpen(asked.shard.tiers.offloadOptimizer);
    bool activations = isOpen(asked.schedule.activations);
    bool stateMustLeave = state && all.need.state[size_t(Tier::device)] > limit; // whatever is done about the rest
    std::optional<Trial> some;
    bool parametersStay = false;
    auto offer = [&](const std::optional<Trial> &trial) {
      if (!trial) return;
      fitting.push_back(*trial);
      some = trial;
      parametersStay |= !trial->offloadsParameters();
    };
    if (activations && !stateMustLeave) offer(sizeActivations());
    if (question.anyRecomputation && !computesAllTheTime()) offer(sizeKept());
    if (state) offer(sizeState(onDevice()));
    if (state && activations && !parametersStay) offer(sizeState(activationsAway()));
    if (state && question.anyRecomputation && !parametersStay && !computesAllTheTime()) offer(sizeState(keepingLeast()));
    if (some) return;
    Settings away = activations ? activationsAway() : onDevice();
    if (state) away.shard.tiers.deviceBytes = 0;
    offer(gatherLater(away));
  }

  static bool isOpen(const std::string &flag) { return flag == "auto"; }

  /// Everything that is left to choose on the device.
  Settings onDevice() const {
    Settings settings = asked;
    settings.shard.tiers.deviceBytes = -1;
    settings.shard.tiers.hostBytes = 0;
    if (isOpen(asked.schedule.activations)) settings.schedule.activations = "none";
    return settings;
  }

  /// On the host if its budget is named, else on disk.
  Settings activationsAway() const {
    Settings settings = onDevice();
    settings.schedule.activations = budgets.host ? "host" : "disk";
    return settings;
  }

  /// Whether something fits whose copies hide behind computation but for a percent: who computes more is not faster.
  bool computesAllTheTime() const {
    return llvm::any_of(fitting, [](const Trial &trial) { return trial.time.seconds <= 1.01 * trial.time.busy[plan::COMPUTE]; });
  }

  /// What lies within blocks is made again in backward.
  Settings keepingLeast() const {
    Settings settings = onDevice();
    settings.keepBytes = 0;
    return settings;
  }

  /// As many activations kept as there is room for on the device, the others made again, and all state there.
  std::optional<Trial> sizeKept() {
    Settings settings = keepingLeast();
    Trial none = attempt(settings);
    if (!fits(none)) return std::nullopt;
    auto made = int64_t(attempt(onDevice()).need.of(Tier::device) - none.need.of(Tier::device));
    return grow(none, made, [&](int64_t kept) {
      settings.keepBytes = uint64_t(kept);
      return settings;
    });
  }

  /// As many activations as there is room for on the device, all state there.
  std::optional<Trial> sizeActivations() {
    Settings settings = activationsAway();
    Trial none = attempt(settings);
    if (!fits(none) && budgets.host) {
      settings.schedule.activations = "disk";
      none = attempt(settings);
    }
    if (!fits(none)) return std::nullopt;
    auto away = int64_t(none.need.work[size_t(settings.schedule.activations == "host" ? Tier::host : Tier::disk)]);
    return grow(none, away, [&](int64_t kept) {
      settings.schedule.activationBytes = away - kept;
      return settings;
    });
  }

  /// As much state as there is room for on the device, then on the host.
  std::optional<Trial> sizeState(Settings settings) {
    auto &tiers = settings.shard.tiers;
    tiers.deviceBytes = 0;
    tiers.hostBytes = int64_t(budgets.host.value_or(0));
    Trial none = attempt(settings);
    if (uint64_t host = none.need.of(Tier::host); budgets.host && host > *budgets.host) { // activations lie there too
      tiers.hostBytes = std::max<int64_t>(0, tiers.hostBytes - int64_t(host - *budgets.host));
      none = attempt(settings);
    }
    if (!fits(none)) return std::nullopt;
    int64_t open = 0;
    if (isOpen(asked.shard.tiers.offloadParams)) open += int64_t(none.bytesOf(kTrained) + none.bytesOf(kFrozen));
    if (isOpen(asked.shard.tiers.offloadOptimizer)) open += int64_t(none.bytesOf(kOptimizer) + none.bytesOf(kUntouched));
    return grow(none, open, [&](int64_t kept) {
      tiers.deviceBytes = kept;
      return settings;
    });
  }

  /// The most of something that fits on the device: nothing of it does (`none`), all of it does not, and a byte of it takes a byte or less.
  Trial grow(Trial none, int64_t all, llvm::function_ref<Settings(int64_t)> keep) {
    Trial most = none;
    int64_t low = 0, high = all, excess = 0; // of `high`, over the limit
    for (int size = 0; size < kSizes && high - low > all / 256; ++size) {
      int64_t kept = std::min(low + int64_t(limit - most.need.of(Tier::device)), high - excess);
      if (kept <= low || kept >= high) kept = low + (high - low) / 2;
      Trial trial = attempt(keep(kept));
      if (fits(trial) && trial.copied <= most.copied)
        most = trial, low = kept;
      else
        high = kept, excess = std::max<int64_t>(0, int64_t(trial.need.of(Tier::device) - limit));
    }
    return most;
  }

  /// Nothing comes before its turn.
  static Settings inTurn(Settings settings) {
    settings.schedule.ahead = settings.schedule.delay = settings.schedule.fetchAhead = 0;
    return settings;
  }

  /// Buckets that are gathered early, and gradients that travel while others are computed, cost memory: with less of it they come later, as
  /// early as there is room.
  std::optional<Trial> gatherLater(Settings settings) {
    int64_t usual = settings.schedule.ahead, fetchAhead = settings.schedule.fetchAhead;
    settings = inTurn(settings);
    Trial latest = attempt(settings);
    if (!fits(latest)) return std::nullopt;
    settings.schedule.fetchAhead = fetchAhead;
    for (int64_t ahead = gathers(latest) ? usual : 0; ahead >= 0; --ahead)
      for (int64_t delay : {1, 0}) {
        settings.schedule.ahead = ahead;
        settings.schedule.delay = delay;
        if (ahead + delay + fetchAhead == 0) break;
        if (Trial trial = attempt(settings); fits(trial)) return trial;
      }
    return latest;
  }

  /// Room that is left keeps gathered buckets whole between forward and backward. How much more that takes shows only when it is tried:
  /// buckets are kept where others have their peak, or where they have not.
  Trial keepGathered(const Trial &usual) {
    if (!gathers(usual)) return usual;
    uint64_t room = limit - usual.need.of(Tier::device);
    for (uint64_t bytes : {room + usual.need.work[size_t(Tier::device)], room, room / 2, room / 4}) {
      if (bytes < usual.leastGathered) break; // nothing would be kept
      Settings with = usual.settings;
      with.schedule.residentBytes = int64_t(std::min<uint64_t>(bytes, INT64_MAX));
      if (Trial trial = attempt(with); fits(trial) && rank(trial) <= rank(usual)) return trial;
    }
    return usual;
  }

  /// Room that is left lets gradients travel longer, where lane compute waits for them: a table's travels as long as those of several
  /// layers.
  Trial reduceLonger(const Trial &usual) {
    const Settings &settings = usual.settings;
    if (settings.shard.partition.world == 1 || settings.schedule.delay == 0) return usual;
    Trial best = usual;
    for (int64_t delay : {2, 4, 8}) {
      if (best.time.seconds <= 1.02 * best.time.busy[plan::COMPUTE]) break;
      Settings longer = settings;
      longer.schedule.delay = delay;
      Trial trial = attempt(longer);
      if (!fits(trial)) break;
      if (rank(trial) < rank(best)) best = trial;
    }
    return best;
  }

  /// Where sharing bytes makes waits, less state may rest on the device: then the arena of programs has room for lanes to run apart.
  Trial leaveRoom(const Trial &placed) {
    double apart = attempt(placed.settings).time.seconds; // where buffers share nothing
    for (int64_t part : {8, 4}) {                         // of that arena
      Settings settings = placed.settings;
      int64_t &state = settings.shard.tiers.deviceBytes, room = int64_t(placed.need.work[size_t(Tier::device)]) / part;
      if (state <= 0 || placed.time.seconds <= 1.02 * apart) break;
      state -= std::min(state, room);
      if (Trial trial = attempt(settings, /*places=*/true); keeps(trial) && rank(trial) < rank(placed)) return trial;
    }
    return placed;
  }

  static bool gathers(const Trial &trial) {
    const shard::PartitionPassOptions &partition = trial.settings.shard.partition;
    return trial.offloadsParameters() || (partition.stage == 3 && partition.world > 1);
  }

  /// What does not fit beside the schedule that needs least must leave: first what nothing touches, then what is frozen, which is only
  /// read, then the rest, which is copied away and back.
  uint64_t leastCopied() const {
    const shard::AssignTiersPassOptions &tiers = question.asked.shard.tiers;
    if (tiers.hostUpdates && (budgets.host || tiers.offloadOptimizer == "host")) return 0; // a gradient goes in place of what it updates
    const Trial *resident = nullptr;
    for (const auto &[key, other] : trials)
      if (const Trial &trial = other.trial;
          other.counts && trial.copied == 0 && (!resident || trial.need.of(Tier::device) < resident->need.of(Tier::device)))
        resident = &trial;
    if (!resident) return 0; // flags let something leave in any case
    uint64_t need = resident->need.of(Tier::device), bytes = need - std::min(need, *budgets.device);
    bytes -= std::min(bytes, resident->bytesOf(kUntouched));
    uint64_t frozen = std::min(bytes, resident->bytesOf(kFrozen));
    return frozen + 2 * (bytes - frozen);
  }

  const Modules &modules;
  const Question &question;
  const Budgets &budgets;
  Settings asked; // with the parts and the stage that are tried
  uint64_t limit; // of device memory, as a sum of live bytes
  std::map<Key, Tried> trials;
  std::vector<Trial> fitting;
  OwningOpRef<ModuleOp> fastest; // of those that are placed and fit, with waits; null if none does
  Rank fastestRank;
  std::optional<Trial> least;       // that needs least of the device's memory
  uint64_t leastState = UINT64_MAX; // of those that were tried, in all tiers together
  unsigned tried = 0;
  bool broken = false;
};

} // namespace

FailureOr<Found> search(const Modules &modules, const Question &question) { return Search(modules, question).run(); }

} // namespace zero::pipeline

//===- trials.h - the choices that were tried ---------------------------------------------------------===//
#pragma once
#include "passes/pipeline/evaluations.h"
#include "passes/pipeline/speculation.h"
#include <set>
#include <tuple>

namespace zero::pipeline {

/// What is better is less.
using Rank = std::tuple<int64_t, int64_t, int64_t, int64_t, uint64_t, bool>;
Rank rankOf(const Trial &trial);
bool faster(const Trial &a, const Trial &b);

/// Whether buckets are gathered: from other ranks, or from other tiers.
bool gathers(const Trial &trial);

/// Whether so many bytes are less than a percent of those that a step copies: not to copy them, or at a better time, makes no choice
/// faster, since those within a percent of each other are equally fast.
inline bool isUnnoticed(uint64_t bytes, const Trial &trial) { return bytes < trial.copied / 100; }

class Trials {
public:
  Trials(Evaluations &evaluations, const Modules &fewLayers, const Question &question, Speculation &speculation);

  /// What will be asked of these trials, found out ahead where threads are idle: each part by trials of its own, which go on from these,
  /// and nothing that was to be found out before.
  using Part = std::function<void(Trials &)>;
  void speculate(const std::vector<Part> &parts);
  /// One more, after those.
  void speculateAlso(const Part &part);
  /// What one of the parts would ask is asked now.
  void reached(size_t part);

  /// With `places` its buffers get offsets. Where a pass fails, and says why, the choice does not fit. Another round finds those it has
  /// tried before. One that is known not to fit, since it did not by far with fewer tiles, is not made: it is that one, with what it would
  /// need at least.
  Trial attempt(const Settings &settings, bool places = false);
  /// The same of any.
  Trial made(const Settings &settings, bool places = false);
  /// One that fits, with its time: what is tried on the way to the one that is looked for is not estimated.
  Trial timed(const Trial &trial);
  /// As attempt, of a choice that is not one of those between which is chosen, unless it is attempted too.
  const Trial &probe(const Settings &settings) { return triedOut(settings, false).trial; }

  /// Bytes of the device that the choice needs at least, as far as a few layers of the model tell; 0 if they do not.
  uint64_t needsAtLeast(const Settings &settings);

  /// What is placed. What is not has at least the live bytes that are counted.
  bool keeps(const Trial &trial) const { return isWithin(trial, *budgets.device); }
  bool fits(const Trial &trial) const { return isWithin(trial, limit); }
  /// Bytes of the device: what is cut into so many tiles more takes at least that part of what it took.
  uint64_t leastWith(Tiling tiling, const Trial &trial) const;

  /// Of the choices that need least of the device, the one that needs least of all tiers. Something must have been tried.
  Trial leastOfAll() const;
  /// The choices that copy nothing between tiers.
  std::vector<Trial> resident() const;
  /// The fastest of those that are placed and fit, if any is.
  const Trial &fastestPlaced() const { return fastest.trial; }
  /// Its module, with waits; null if none is.
  mlir::OwningOpRef<mlir::ModuleOp> takeFastest();

  uint64_t limit;                   // of device memory, as a sum of live bytes
  std::optional<Trial> least;       // that needs least of the device's memory
  uint64_t leastState = UINT64_MAX; // of those that were tried, in all tiers together
  unsigned tried = 0;               // choices
  uint64_t steps = 0;               // that were scheduled for them: what a search takes time in proportion to
  bool broken = false;              // a pass has failed

private:
  /// Goes on from `other` by itself, until `stop` says so: then it is broken.
  Trials(const Trials &other, const std::atomic<bool> &stop);

  struct Tried {
    Trial trial;
    bool counts = false, isTimed = false;
  };
  /// All tiers, of which the device has so many bytes.
  bool isWithin(const Trial &trial, uint64_t device) const;
  Speculation::Work workOf(const Part &part) const;
  Tried &triedOut(const Settings &settings, bool places);
  std::optional<Trial> ruledOut(Settings settings) const;

  Evaluations &evaluations;
  const Modules &fewLayers;
  const Question &question;
  const Budgets &budgets;
  Speculation *speculation = nullptr; // null: these are speculative
  const std::atomic<bool> *stop = nullptr;
  std::map<Key, Tried> trials;
  std::set<Tiling> tilings; // of those
  TriedOut latest, probed;  // that fits, and that does not, to be estimated without being made again
  std::optional<Rank> fastestRank;
  TriedOut fastest; // its module: null if another has made it
};

} // namespace zero::pipeline

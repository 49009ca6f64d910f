//===- tiers.h - where everything rests, for one form -------------------------------------------------===//
// A form is what tiles there are, the stage and the order of micro-steps. With it are chosen the tier of each tensor of model state, what
// activations wait elsewhere or are made again, and how early everything comes: from the choice that copies nothing to the one that needs
// least of the device.
#pragma once
#include "passes/pipeline/trials.h"

namespace zero::pipeline {

/// Whether the search decides what this flag says.
inline bool isOpen(const std::string &flag) { return flag == "auto"; }

/// Nothing comes before its turn.
Settings inTurn(Settings settings);

class Tiers {
public:
  /// `asked` has the form. What fits is added to `fitting`.
  Tiers(Trials &trials, const Question &question, const Settings &asked, std::vector<Trial> &fitting)
      : trials(trials), question(question), budgets(question.budgets), asked(asked), fitting(fitting), before(fitting.size()) {}

  void choose();
  /// Adds what offerStateWithActivations says, which choose() leaves out where the parameters stay on the device without that.
  void chooseStateWithActivations();
  /// Adds the same choice with masters that come for each use in place of compute copies, and as much state as fits on the device then, if
  /// that looks faster.
  void chooseFetchingMasters(const Trial &withCopies);

  /// Everything that is left to choose on the device.
  Settings onDevice() const;
  /// What needs least of the device as a rule: nothing rests there that may lie elsewhere, and everything comes when its turn comes.
  /// `makesAgain`: of activations what lies within blocks is made again.
  Settings mostSparing(bool makesAgain) const;

private:
  llvm::ArrayRef<Trial> offered() const { return llvm::ArrayRef(fitting).drop_front(before); }
  Trial best() const { return *std::min_element(offered().begin(), offered().end(), faster); }
  /// Whether it is something that fits, which is added then unless it has been.
  bool offer(const std::optional<Trial> &trial);
  /// As much state as fits on the device with activations away: on disk, or if the host has a budget on either.
  void offerStateWithActivations(const Settings &settings);
  /// As much as fits on the device of activations, of state, and of state with activations away.
  void offerSizes(const Settings &settings);
  /// Whether computation alone takes less than the best step so far, or than that with offsets: sharing bytes makes steps longer. What
  /// offerSizes would try is found out ahead meanwhile.
  bool mayBeFaster(const Settings &settings);
  bool opensState() const { return isOpen(asked.shard.tiers.offloadParams) || isOpen(asked.shard.tiers.offloadOptimizer); }
  bool opensActivations() const { return isOpen(asked.schedule.activations); }
  /// With activations on a tier; on the host only if its budget is named.
  Settings away(Settings settings, state::Tier tier = state::Tier::host) const;
  Settings keepingLeast() const;
  bool computesAllTheTime();
  std::optional<Trial> sizeKept();
  std::optional<Trial> sizeActivations(Settings settings);
  std::optional<Trial> sizeState(Settings settings);
  Trial grow(Trial none, int64_t all, llvm::function_ref<Settings(int64_t)> keep, int64_t low = 0);
  Trial fillHost(Trial most);
  std::optional<Trial> gatherLater(Settings settings);

  Trials &trials;
  const Question &question;
  const Budgets &budgets;
  const Settings &asked;
  std::vector<Trial> &fitting;
  size_t before; // of these were there
};

} // namespace zero::pipeline

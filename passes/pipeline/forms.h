//===- forms.h - the forms of a plan that fit --------------------------------------------------------===//
#pragma once
#include "passes/pipeline/tiers.h"

namespace zero::pipeline {

/// A form is what tiles there are, the stage and the order of micro-steps. Of what the flags leave open they are tried one after another,
/// with all that tiers.h chooses for each, as far as others may fit or be faster.
class Forms {
public:
  Forms(Trials &trials, const Question &question, const Modules &modules, const Modules &fewLayers)
      : trials(trials), question(question), budgets(question.budgets), modules(modules), fewLayers(fewLayers), asked(question.asked) {}

  /// Finds what fits anew. Where nothing fits, or tiles may be faster, a quarter of the tokens is done at a time, and where still nothing
  /// fits, a sixteenth. Then, with so many, there are more parts; where logits take more than the gradient that would wait in their place,
  /// they are kept or made again, and else made again if nothing fits that keeps them. That nothing fits is to be known soon: tiles are
  /// given up that do not bring down what is needed at least; both kinds together are tried at last.
  void choose();

  /// Of what fits, the best first, the two that look best with every number of tiles: what sharing bytes costs differs most between these.
  std::vector<Trial> candidates() const;

  /// Everything that is left to choose on the device, in the form of `chosen`.
  Settings onDevice(const Settings &chosen);

private:
  /// The same, by other trials.
  Forms(const Forms &other, Trials &trials)
      : trials(trials), question(other.question), budgets(other.budgets), modules(other.modules), fewLayers(other.fewLayers),
        asked(other.asked), fitting(other.fitting) {}

  bool chooseTiled(Tiling tiled);
  void tryStateWithActivations();
  void tryFetchingMasters();
  bool tilesGainNothing(const std::vector<Trials::Part> &next);
  void makeLargeLogitsAgain(Tiling tiling);
  bool chooseFormWith(Tiling tiling);
  uint64_t needed(const Settings &settings, uint64_t enough);
  void chooseForm();
  bool areHopeless(llvm::ArrayRef<int64_t> stages);
  std::vector<Settings> mostSparing(llvm::ArrayRef<int64_t> stages);
  bool isFar(uint64_t need) const { return need > llvm::SaturatingAdd(trials.limit, trials.limit / 4); }

  void setTiling(Tiling tiling);
  int64_t workFor(Tiling tiling);
  bool keepsLargeLogits(Tiling tiling);
  std::vector<int64_t> stages() const;
  uint64_t room() const;
  Tiers tiers() { return {trials, question, asked, fitting}; }

  Trials &trials;
  const Question &question;
  const Budgets &budgets;
  const Modules &modules, &fewLayers;
  Settings asked; // with the form that is tried
  std::vector<Trial> fitting;
};

} // namespace zero::pipeline

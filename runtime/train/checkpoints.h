// --checkpoint and --keep: what a run saves, and which of it stays.
#pragma once
#include "runtime/checkpoint/frozen.h"
#include "runtime/train/setup.h"
#include <optional>
#include <string>

namespace zero::runtime {

class Checkpoints {
public:
  // `setup`, `rank` and `frozen` outlive it. After resume().
  Checkpoints(const TrainOptions &options, Setup &setup, const Rank &rank, const FrozenSums &frozen, uint64_t keep);

  // Collective. Throws a sentence if a number is not finite, and what was saved before stays.
  void save(const Progress &at);

  // On each rank: throws a sentence, with `outcome` ("it is not exported") in it, if the run has diverged.
  void requireFinite(const Progress &at, const char *outcome) const;

private:
  void removeOld();

  const TrainOptions &options;
  Setup &setup;
  const Rank &rank;
  const FrozenSums &frozen;
  uint64_t keep;                   // checkpoints that stay
  std::optional<std::string> last; // saved or resumed
};

} // namespace zero::runtime

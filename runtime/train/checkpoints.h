// --checkpoint and --keep: what a run saves, and which of it stays.
#pragma once
#include "runtime/train/setup.h"
#include <optional>
#include <string>

namespace zero::runtime {

class Checkpoints {
public:
  // `setup` and `rank` outlive it. After resume().
  Checkpoints(const TrainOptions &options, Setup &setup, const Rank &rank);

  // Collective. Throws a sentence if a number is not finite, and what was saved before stays.
  void save(const Progress &at);

  // On each rank: throws a sentence, with `outcome` ("it is not exported") in it, if the run has diverged.
  void requireFinite(const Progress &at, const char *outcome) const;

private:
  void removeOld();

  const TrainOptions &options;
  Setup &setup;
  const Rank &rank;
  std::optional<std::string> last; // saved or resumed
};

} // namespace zero::runtime

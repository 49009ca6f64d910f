#include "runtime/train/checkpoints.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/process/streams.h"
#include <filesystem>
#include <fmt/format.h>
#include <utility>

namespace fs = std::filesystem;

namespace zero::runtime {

Checkpoints::Checkpoints(const TrainOptions &options, Setup &setup, const Rank &rank, const FrozenSums &frozen, uint64_t keep)
    : options(options), setup(setup), rank(rank), frozen(frozen), keep(keep), last(setup.resumedFrom) {
  if (options.checkpoint && setup.damaged.empty()) removeOld(); // a run that was killed may not have come to it
}

void Checkpoints::save(const Progress &at) {
  last = saveCheckpoint(rank, frozen, *options.checkpoint, at, last);
  removeOld();
}

// On rank 0. What cannot be removed is in nobody's way.
void Checkpoints::removeOld() {
  if (rank.rank != 0) return;
  bool stays = false; // a damaged one
  auto goOn = [](const std::string &sentence) { complain(fmt::format("zerorun: {}; the run goes on", sentence)); };
  for (const std::string &damaged : std::exchange(setup.damaged, {})) { // one of these would count as a whole one, or be the newest
    std::error_code gone;
    bool here = fs::equivalent(fs::path(damaged).parent_path(), *options.checkpoint, gone) && fs::exists(damaged, gone);
    if (!here || fs::equivalent(damaged, *last, gone)) continue; // the same step was saved again
    try {
      setAside(damaged);
    } catch (const Error &error) {
      goOn(error.what());
      setup.damaged.push_back(damaged), stays = true; // tried again after the next save
    }
  }
  if (stays) return; // whole ones would be removed in its place
  for (const std::string &sentence : removeOlder(*options.checkpoint, keep)) goOn(sentence);
}

void Checkpoints::requireFinite(const Progress &at, const char *outcome) const {
  try {
    runtime::requireFinite(rank);
  } catch (const Diverged &diverged) {
    throw Error(sentenceOf(diverged, at.step, outcome, last));
  }
}

} // namespace zero::runtime

// Checkpoints: .safetensors pieces keyed by parameter name and slice, and an index (index.h). Nothing in them depends on buckets,
// stage or world, so any run of the same parameters can resume.
//
//   DIR/step-20/index.json           what the run was, and where every slice lies
//   DIR/step-20/rank-0.safetensors   what rank 0 owned; one file per rank
//
// How a checkpoint appears and goes, so that there is always a whole one, whatever is killed when:
//   1. Rank 0 makes the folder DIR/step-N.partial; every rank writes and flushes its piece in it; rank 0 writes and flushes the index, then
//      flushes the folder.
//   2. Rank 0 renames it to DIR/step-N, and flushes DIR.
//   3. Only then older ones go: each is renamed to DIR/step-M.removed, and that is removed.
// What a killed run leaves, .partial and .removed folders, the next run removes once it holds the lock on DIR (lock.h).
#pragma once
#include "runtime/base/error.h"
#include "runtime/checkpoint/frozen.h"
#include "runtime/checkpoint/slices.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zero::runtime {

// What the loss of an f16 run is multiplied by.
struct LossScale {
  uint64_t value; // a power of two
  uint64_t good;  // steps in a row that were not skipped, since it changed
};

struct Progress {
  uint64_t step = 0;     // steps done, skipped ones included
  uint64_t position = 0; // samples consumed: where the next global batch starts
  uint64_t seed = 0;
  bool shuffled = false;                                          // each epoch in an order drawn from the seed
  std::vector<std::pair<std::string, std::string>> settings = {}; // hyper-parameters by flag, kept for who resumes; none in older ones
  uint64_t skipped = 0;                                           // steps that changed nothing, as their gradient was not finite
  std::optional<LossScale> scale = {};                            // of the next step, if the plan scales its loss
};

// A checkpoint is not what was written: cut short, changed, or a part is missing. Another one may be whole.
class Damaged : public Error {
public:
  using Error::Error;
};

// The folders in `directory` that are named step-N and have an index, oldest first; empty if there is no such directory.
std::vector<std::string> checkpointsIn(const std::string &directory);

// Those that `--resume directory` may go on from, newest first: those in it, or `directory` itself if it is one. Throws a sentence if there
// is none.
std::vector<std::string> checkpointsToResume(const std::string &directory);

// Collective. Writes DIR/step-N and returns its path. `previous` is named in the sentence of a failure: of one rank that fails alone, or,
// as collectively() throws it, if one cannot write its pieces, or a number that it owns is not finite. Nothing is left of it then.
std::string saveCheckpoint(const Rank &rank, const FrozenSums &frozen, const std::string &directory, const Progress &progress,
                           const std::optional<std::string> &previous);

// Bytes of the tensors in all files of one, with what fills up buckets.
uint64_t checkpointBytes(const plan::Plan &plan);

// On rank 0, with the lock: removes what killed runs have left.
void removeLeftovers(const std::string &directory);

// On rank 0, after one was saved: removes all but the `keep` newest ones. Returns a sentence for each that cannot be removed.
std::vector<std::string> removeOlder(const std::string &directory, uint64_t keep);

// Takes the name away of one that was found damaged (step-N becomes step-N.damaged) and keeps its files: whoever looks at them may find
// more.
void setAside(const std::string &checkpoint);

// Fills what is trained, and the state of its optimizer, of this rank from a checkpoint and returns where to go on. Throws a sentence if
// it does not fit the plan, or goes with other values of what is frozen, and Damaged if it is; memory then holds parts of it.
Progress loadCheckpoint(const Rank &rank, const FrozenSums &frozen, const std::string &checkpoint);

} // namespace zero::runtime

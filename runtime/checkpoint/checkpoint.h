// Checkpoints: .safetensors pieces keyed by parameter name and slice, and an index. Nothing in them depends on buckets,
// stage or world, so any run of the same parameters can resume.
//
//   DIR/step-20/index.json           what the run was, and where every slice lies
//   DIR/step-20/rank-0.safetensors   what rank 0 owned; one file per rank
//
// index.json: {"format": 1, "step", "position", "seed", "world", "stage", "optimizer": "adamw"|"sgd",
//   "settings": {"--lr": "0.001", …},
//   "pieces": [{"tensor": "param"|"m"|"v"|"momentum", "parameter", "start", "count", "file", "key"}, …]}
// starts and counts are elements of the parameter in row-major order; keys are tensors of the piece's file, and KEY.crc32c
// holds the CRC-32C of each of its blocks of 2^20 elements.
//
// A checkpoint is written as DIR/step-N.partial and renamed when every rank's part is on disk; the one before it is
// removed only then. So there is always a whole one, whatever is killed when.
#pragma once
#include "runtime/checkpoint/slices.h"
#include <optional>
#include <string>

namespace zero::runtime {

struct Progress {
  uint64_t step = 0;     // updates done
  uint64_t position = 0; // samples consumed: where the next global batch starts
  uint64_t seed = 0;
  std::vector<std::pair<std::string, std::string>> settings; // hyper-parameters by flag, kept for who resumes; none in older checkpoints
};

// The directories' names of the whole checkpoints in `directory`, oldest first; empty if there is no such directory.
std::vector<std::string> wholeCheckpoints(const std::string &directory);

// Collective. Writes DIR/step-N and then removes `previous`, if given, and partial ones. Returns the new one's path.
std::string saveCheckpoint(const Rank &rank, const std::string &directory, const Progress &progress,
                           const std::optional<std::string> &previous);

// The newest whole checkpoint of `directory`, or `directory` itself if it is one. Throws a sentence if there is none.
std::string findCheckpoint(const std::string &directory);

// Fills parameters and optimizer state of this rank from a checkpoint and returns where to go on. Throws a sentence if
// it does not fit the plan.
Progress loadCheckpoint(const Rank &rank, const std::string &checkpoint);

} // namespace zero::runtime

// index.json of a checkpoint: what the run was, and where every slice lies.
//
// {"format": 3, "step", "position", "seed", "shuffled", "world", "stage", "optimizer": "adamw"|"sgd",
//  "skipped", "loss_scale", "good_steps",   (of runs in f16, and "skipped" of what goes on from one)
//  "settings": {"--lr": "0.001", …},
//  "frozen": [{"parameter", "sum": "00c0ffee00c0ffee"}, …],   (frozen.h; of these there are no pieces)
//  "pieces": [{"tensor": "param"|"m"|"v"|"momentum", "parameter", "start", "count", "file", "key"}, …],
//  "files": [{"file", "sum": "e3069283"}, …],   (older ones have none)
//  "crc32c": "e3069283"}
//
// starts and counts are elements of the parameter in row-major order; keys are tensors of the piece's file, and KEY.crc32c
// holds the CRC-32C of each of its blocks of 2^20 elements. The sum of a file is the CRC-32C of all these, in their order there: it tells a
// file of another step or run, which is whole by itself. The last line is the CRC-32C of all bytes before it. Format 1 had no such line;
// up to format 2 what was frozen had pieces, too.
#pragma once
#include "runtime/checkpoint/checkpoint.h"
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zero::runtime {

struct IndexPiece {
  uint64_t start = 0, count = 0; // elements
  std::string file, key;
};

struct Index {
  Progress progress;
  uint64_t world = 1, stage = 0;
  std::string optimizer;
  // By parameter and tensor, in order: each begins where the one before ends, the first at 0.
  std::map<std::string, std::map<std::string, std::vector<IndexPiece>>> pieces;
  std::map<std::string, uint64_t> frozen = {}; // the sum of each frozen parameter
  std::map<std::string, uint32_t> files = {};  // the sum of each file
};

std::string indexText(const Index &index);

// Throws Damaged for what no zerorun has written, Error for the format of a later one. `name` stands for the file in sentences.
Index parseIndex(std::string_view text, const std::string &name);

} // namespace zero::runtime

// Which sample goes where. A global batch is the next micros * world * samples places of an endless stream; micro-steps take
// their part in order, and within one the ranks do. So one rank that accumulates four micro-steps sees the same global batch as
// four ranks. Each epoch of the stream holds every sample once: 0, 1, …, n-1, or shuffled, in an order of the epoch's own.
#pragma once
#include "runtime/data/permutation.h"
#include <cstdint>
#include <optional>

namespace zero::runtime {

struct Sampler {
  uint64_t samples = 0; // in the data set
  uint64_t perRank = 0; // samples of one rank in one micro-step: Plan.samples
  uint64_t world = 1;
  uint64_t micros = 1;                // micro-steps of one global batch: Plan.accumulate, 1 in evaluation
  std::optional<uint64_t> shuffled{}; // by this seed

  uint64_t globalBatch() const { return micros * world * perRank; }
  // Place of sample i of this rank and micro-step within the global batch.
  uint64_t within(uint64_t micro, uint64_t rank, uint64_t i) const { return (micro * world + rank) * perRank + i; }
  // The data set's sample at place `within` of the global batch that starts at stream position `start`.
  uint64_t sample(uint64_t start, uint64_t within) const {
    uint64_t place = start % samples + within;
    if (!shuffled) return place % samples;
    return Permutation(samples, *shuffled, start / samples + place / samples)(place % samples);
  }
};

} // namespace zero::runtime

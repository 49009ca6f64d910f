// First values of the parameters: each rank reads or makes only what it holds.
#pragma once
#include "runtime/checkpoint/slices.h"

namespace zero::runtime {

// Fills every bucket's parameters from files or rules, each copy by itself: a compute copy may hold more than this rank's master does.
// Optimizer state and padding stay zero, as arenas start. `threads` share the making of random numbers.
void initialiseParameters(const Rank &rank, int threads);

// Elements [start, start + count) of what Init.NORMAL with this seed and std yields.
void normalNumbers(uint64_t seed, float std, uint64_t start, uint64_t count, float *out);

} // namespace zero::runtime

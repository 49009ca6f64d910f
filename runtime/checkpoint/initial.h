// First values of the parameters: each rank reads or makes only what it holds.
#pragma once
#include "runtime/checkpoint/frozen.h"
#include "runtime/checkpoint/slices.h"

namespace zero::runtime {

// Fills the parameters of all buckets, or of frozen ones alone, from files or rules, each copy by itself: a compute copy may hold more than
// this rank's master does. Optimizer state and padding stay zero, as arenas start. `threads` share the making of random numbers. Returns
// the sums of what this rank owns of the frozen ones.
enum class Fill { All, Frozen };
FrozenSums initialiseParameters(const Rank &rank, int threads, Fill fill = Fill::All);

} // namespace zero::runtime

// A run has diverged where a number is not finite: what holds one is no checkpoint and no result.
#pragma once
#include "runtime/checkpoint/slices.h"

namespace zero::runtime {

// Where the first of the values that is infinite or no number lies; `count` if there is none.
uint64_t firstNotFinite(const float *values, uint64_t count);

// On each rank, of what it owns: throws a sentence that names a trained parameter, or the state of its optimizer, which holds such a
// number.
void requireFinite(const Rank &rank);

} // namespace zero::runtime

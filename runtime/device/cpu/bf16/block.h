// A block of a product: 32 x 32 sums of packed operands. What a unit does; the rest of a product is the same for all.
#pragma once
#include "runtime/device/cpu/bf16/prefetch.h"

namespace zero::runtime::bf16 {

// Rows of 32 sums in f32, `ld` elements from one to the next.
struct Sums {
  float *data;
  int64_t ld;
};

// `to` = `from` (zeros where that is null) + A · B over `steps` registers of depth, of the first `rows` rows at least. Before each register
// `lines` lines are prefetched.
using MultiplyBlock = void (*)(const Bf16 *a, const Bf16 *b, int64_t steps, int64_t rows, Sums from, Sums to, Prefetch &prefetch,
                               int64_t lines);
void multiplyOnMatrices(const Bf16 *a, const Bf16 *b, int64_t steps, int64_t rows, Sums from, Sums to, Prefetch &prefetch, int64_t lines);
void multiplyOnVectors(const Bf16 *a, const Bf16 *b, int64_t steps, int64_t rows, Sums from, Sums to, Prefetch &prefetch, int64_t lines);

} // namespace zero::runtime::bf16

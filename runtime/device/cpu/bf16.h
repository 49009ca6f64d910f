// bf16 is the upper half of an f32. Widening is exact; rounding is to nearest even, keeps NaN, and is done in integers, so that every
// processor gives the same bits.
#pragma once
#include <cstdint>

namespace zero::runtime {

enum class Bf16 : uint16_t {};

// Rows of `columns` elements, `ldFrom` and `ldTo` elements apart.
void widen(int64_t rows, int64_t columns, const Bf16 *from, int64_t ldFrom, float *to, int64_t ldTo);
void round(int64_t rows, int64_t columns, const float *from, int64_t ldFrom, Bf16 *to, int64_t ldTo);

} // namespace zero::runtime

// Numbers of two bytes from and to f32. bf16 is the upper half of an f32; f16 has 5 bits of exponent and 10 of fraction. Widening is exact;
// rounding is to nearest even, what is too large becomes infinite, NaN stays NaN. Both are done with integers and f32, so that every
// processor gives the same bits.
#pragma once
#include <cstdint>

namespace zero::runtime {

enum class Bf16 : uint16_t {};
enum class F16 : uint16_t {};

// Rows of `columns` elements, `ldFrom` and `ldTo` elements apart.
void widen(int64_t rows, int64_t columns, const Bf16 *from, int64_t ldFrom, float *to, int64_t ldTo);
void widen(int64_t rows, int64_t columns, const F16 *from, int64_t ldFrom, float *to, int64_t ldTo);
void round(int64_t rows, int64_t columns, const float *from, int64_t ldFrom, Bf16 *to, int64_t ldTo);
void round(int64_t rows, int64_t columns, const float *from, int64_t ldFrom, F16 *to, int64_t ldTo);

} // namespace zero::runtime

// dst[i] = src[0 * stride + i] + src[1 * stride + i] + … in f32 and in exactly this order, where part `own` is read from `mine`
// instead. dst may be `mine` or the own part of src if they are f32; those of bf16 are widened, and apart from it.
#pragma once
#include <cstdint>

namespace zero::runtime {

enum class Bf16Bits : uint16_t {}; // the upper half of an f32

void orderedSum(const float *parts, uint64_t stride, int world, int own, const float *mine, float *dst, uint64_t count);
void orderedSum(const Bf16Bits *parts, uint64_t stride, int world, int own, const Bf16Bits *mine, float *dst, uint64_t count);

} // namespace zero::runtime

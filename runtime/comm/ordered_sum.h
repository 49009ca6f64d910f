// dst[i] = src[0 * stride + i] + src[1 * stride + i] + … in exactly this order, where part `own` is read from `mine`
// instead. dst may be `mine` or the own part of src.
#pragma once
#include <cstdint>

namespace zero::runtime {

void orderedSum(const float *parts, uint64_t stride, int world, int own, const float *mine, float *dst, uint64_t count);

} // namespace zero::runtime

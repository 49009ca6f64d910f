#include "runtime/checkpoint/finite.h"
#include "runtime/checkpoint/tensors.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace zero::runtime {

uint64_t firstNotFinite(const float *values, uint64_t count) {
  constexpr uint32_t kExponent = 0x7f800000; // all of its bits are set
  constexpr uint64_t kBlock = 4096;          // a loop without a branch, which compilers make vectors of
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t end = std::min(begin + kBlock, count);
    uint32_t found = 0;
    for (uint64_t i = begin; i < end; ++i) found |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent;
    if (!found) continue;
    return static_cast<uint64_t>(std::find_if_not(values + begin, values + end, [](float v) { return std::isfinite(v); }) - values);
  }
  return count;
}

void requireFinite(const plan::Plan &plan, const std::string &tensor, const Slice &slice, uint64_t first, std::span<const float> values) {
  uint64_t at = firstNotFinite(values.data(), values.size());
  if (at == values.size()) return;
  throw Diverged(fmt::format("the run has diverged: {}parameter '{}' holds {} at element {}",
                             tensor == "param" ? "" : fmt::format("the optimizer's '{}' of ", tensor),
                             plan.parameters(slice.parameter).name(), values[at], slice.start + first + at));
}

std::string sentenceOf(const Diverged &diverged, uint64_t step, const char *outcome, const std::optional<std::string> &last) {
  return fmt::format("{} after step {}, so {}{}; a smaller --lr, more --warmup or --clip may help", diverged.what(), step, outcome,
                     last ? fmt::format(", and '{}' stays the last checkpoint", *last) : "");
}

void requireFinite(const Rank &rank) {
  PieceMap map(rank.plan);
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    for (const SavedTensor &tensor : savedTensors(bucket)) { // nothing of what is frozen: a mask may well hold -inf
      Range held = heldIn(bucket, *tensor.tensor, rank.rank);
      for (const Slice &slice : map.slices(b, ownedBy(bucket, rank.rank)))
        readFloats(rank.state, tensor.tensor->ref(), slice.at - held.begin, slice.count,
                   [&](uint64_t first, std::span<const float> values) { requireFinite(rank.plan, tensor.name, slice, first, values); });
    }
  }
}

} // namespace zero::runtime

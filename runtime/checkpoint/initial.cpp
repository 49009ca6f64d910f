#include "runtime/checkpoint/initial.h"
#include "runtime/checkpoint/first_values.h"
#include <algorithm>

namespace zero::runtime {
namespace {

// Fills one copy of a bucket. `frozen`: where to add what this rank owns of it, if it is frozen.
void fillCopy(const Rank &rank, const PieceMap &map, int b, const plan::StateTensor &copy, FirstValues &source, FrozenSums *frozen) {
  const plan::Bucket &bucket = rank.plan.buckets(b);
  Range range = heldIn(bucket, copy, rank.rank), owned = ownedBy(bucket, rank.rank);
  for (const Slice &slice : map.slices(b, range)) {
    const plan::Parameter &parameter = rank.plan.parameters(slice.parameter);
    writeNumbers(rank.state, copy, slice.at - range.begin, slice.count, [&](uint64_t first, std::span<float> values) {
      source.read(parameter, slice.start + first, values);
      if (!frozen) return;
      uint64_t at = slice.at + first, begin = std::clamp(owned.begin, at, at + values.size()),
               end = std::clamp(owned.end, begin, at + values.size());
      frozen->owned[parameter.name()] += frozenSum(slice.start + first + (begin - at), values.subspan(begin - at, end - begin));
    });
  }
}

} // namespace

FrozenSums initialiseParameters(const Rank &rank, int threads, Fill fill) {
  PieceMap map(rank.plan);
  FirstValues source(rank.plan, threads);
  FrozenSums frozen;
  for (const plan::Parameter &parameter : rank.plan.parameters())
    if (!plan::isTrainable(rank.plan, parameter)) frozen.owned[parameter.name()] = 0; // on all ranks
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    if (bucket.trainable() && fill == Fill::Frozen) continue;
    for (const plan::StateTensor *copy : copiesOfParameters(bucket))
      fillCopy(rank, map, b, *copy, source, bucket.trainable() ? nullptr : &frozen);
  }
  return frozen;
}

} // namespace zero::runtime

// Which elements of which parameter lie where: the one place that translates between flat buckets and names.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/plan/state.h"
#include <cstdint>
#include <functional>
#include <vector>

namespace zero::runtime {

// Elements [start, start + count) of a parameter lie at elements [at, at + count) of its bucket.
struct Slice {
  int parameter;
  uint64_t start, count, at;
};

using plan::Range;

// The shard rank `rank` owns.
Range ownedBy(const plan::Bucket &bucket, uint64_t rank);
// What a tensor of the bucket holds on this rank.
Range heldIn(const plan::Bucket &bucket, const plan::StateTensor &tensor, uint64_t rank);

// The parameters' slices of buckets, computed once per plan.
class SliceMap {
public:
  explicit SliceMap(const plan::Plan &plan);
  // Slices inside `range` of the bucket, in the bucket's order. Padding belongs to no slice.
  std::vector<Slice> slices(int bucket, Range range) const;

private:
  const plan::Plan &plan;
  std::vector<std::vector<int>> parameters; // by bucket, by offset
};

uint64_t elementsOf(const plan::Parameter &parameter);

// What a rank needs to move model state in and out of files.
struct Rank {
  const plan::Plan &plan;
  uint64_t rank;
  std::function<void *(const plan::Ref &)> locate; // Engine::hostPointer
  Communicator &communicator;                      // barriers and agreement, on the calling thread
};

} // namespace zero::runtime

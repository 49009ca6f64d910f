#include "runtime/checkpoint/slices.h"

namespace zero::runtime {

Range ownedBy(const plan::Bucket &bucket, uint64_t rank) { return plan::rangeOf(bucket, plan::SHARD, rank); }

Range heldIn(const plan::Bucket &bucket, const plan::StateTensor &tensor, uint64_t rank) {
  return plan::rangeOf(bucket, tensor.part(), rank);
}

} // namespace zero::runtime

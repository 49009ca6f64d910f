#include "runtime/checkpoint/slices.h"
#include <algorithm>

namespace zero::runtime {

uint64_t elementsOf(const plan::Parameter &parameter) {
  uint64_t elements = 1;
  for (int64_t extent : parameter.shape()) elements *= static_cast<uint64_t>(extent);
  return elements;
}

Range ownedBy(const plan::Bucket &bucket, uint64_t rank) { return plan::rangeOf(bucket, plan::SHARD, rank); }

Range heldIn(const plan::Bucket &bucket, const plan::StateTensor &tensor, uint64_t rank) {
  return plan::rangeOf(bucket, tensor.part(), rank);
}

SliceMap::SliceMap(const plan::Plan &plan) : plan(plan), parameters(static_cast<size_t>(plan.buckets_size())) {
  for (int i = 0; i < plan.parameters_size(); ++i) parameters[plan.parameters(i).bucket()].push_back(i);
  for (auto &list : parameters)
    std::stable_sort(list.begin(), list.end(),
                     [&](int a, int b) { return plan.parameters(a).offset_elements() < plan.parameters(b).offset_elements(); });
}

std::vector<Slice> SliceMap::slices(int bucket, Range range) const {
  std::vector<Slice> result;
  for (int index : parameters[static_cast<size_t>(bucket)]) {
    uint64_t first = plan.parameters(index).offset_elements(), last = first + elementsOf(plan.parameters(index));
    uint64_t begin = std::max(first, range.begin), end = std::min(last, range.end);
    if (begin < end) result.push_back({index, begin - first, end - begin, begin});
  }
  return result;
}

} // namespace zero::runtime

//===- tier_elements.cpp - which elements of a bucket lie where -------------------------------------------===//
#include "runtime/judge/tiers.h"
#include "runtime/plan/mesh.h"
#include <algorithm>

namespace zero::judge {

void Tiers::sameElements(int s, const plan::Step &step, const std::string &does) {
  for (uint64_t rank : ranks())
    if (uint64_t first = elementAt(step.reads(0), rank), other = elementAt(step.writes(0), rank); first != other)
      return report(name(s) + " " + does + " from element " + std::to_string(first) + " on where that from " + std::to_string(other) +
                    " on belongs");
}

std::vector<uint64_t> Tiers::ranks() const { return plan.world() > 1 ? std::vector<uint64_t>{0, 1} : std::vector<uint64_t>{0}; }

uint64_t Tiers::placeOf(const plan::Bucket &bucket, uint64_t rank) const { return plan::placeOf(plan, bucket.axes(), rank); }

uint64_t Tiers::elementAt(const plan::Ref &ref, uint64_t rank) const {
  plan::Content content = contents.of(ref);
  const plan::Bucket &bucket = plan.buckets(content.bucket);
  uint64_t before = (plan::offsetOf(plan, ref, rank) - content.offset) / std::max<uint64_t>(plan::bytesOf(content.dtype), 1);
  return plan::rangeOf(bucket, content.part, placeOf(bucket, rank)).begin + content.begin + before;
}

uint64_t Tiers::firstOf(const plan::Step &update, uint64_t rank) const {
  const plan::Bucket &bucket = plan.buckets(int(update.update().bucket()));
  return plan::rangeOf(bucket, update.update().part(), placeOf(bucket, rank)).begin + update.update().begin_elements();
}

bool Tiers::beginsAt(const plan::Ref &ref, const plan::Step &update) const {
  return std::ranges::all_of(ranks(), [&](uint64_t rank) { return elementAt(ref, rank) == firstOf(update, rank); });
}

bool Tiers::isHomeOf(const plan::Ref &ref, const plan::StateTensor &tensor, const plan::Step &update) const {
  const plan::Bucket &bucket = plan.buckets(int(update.update().bucket()));
  uint64_t size = plan::bytesOf(tensor.dtype()), begin = tensor.ref().offset() + update.update().begin_elements() * size;
  uint64_t stride = isPartial(bucket, tensor, update) ? bucket.shard_elements() * size : 0;
  return ref.buffer() == tensor.ref().buffer() &&
         std::ranges::all_of(ranks(), [&](uint64_t rank) { return plan::offsetOf(plan, ref, rank) == begin + rank * stride; });
}

bool Tiers::isPartial(const plan::Bucket &bucket, const plan::StateTensor &tensor, const plan::Step &update) const {
  return tensor.part() == plan::WHOLE && plan::groupSize(plan, bucket.axes()) > 1 && update.update().part() == plan::SHARD;
}

} // namespace zero::judge

//===- layout.cpp - how parameters are laid out in buckets -----------------------------------------===//
#include "passes/shard/layout.h"
#include <algorithm>

namespace zero::shard {
namespace {
int64_t roundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Whether each read of the one has one of the other near it.
bool readsNear(const Member &little, const Member &large) {
  return std::all_of(little.reads.begin(), little.reads.end(), [&](int64_t read) {
    auto next = std::lower_bound(large.reads.begin(), large.reads.end(), read - kNearReads);
    return next != large.reads.end() && *next <= read + kNearReads;
  });
}
} // namespace

BucketLimit defaultLimit(int64_t total, int64_t tile, int64_t world) {
  int64_t most = std::clamp<int64_t>(total / 16, 64 << 10, 8 << 20);
  BucketLimit limit = limitOf(tile ? std::min(most, tile) : most); // others need not be larger than what was cut for being large
  if (world == 1) limit.most = std::min<int64_t>(limit.most, 1 << 20);
  return limit;
}

int64_t sliceElementsOf(int64_t shards) { return roundUp(std::clamp<int64_t>(shards / 256, 1 << 20, 64 << 20), 1 << 20); }

int64_t rowElements(int64_t shard, int64_t align) {
  int64_t row = align;
  while (row < 1024 && row * 2 * 1000 <= shard) row *= 2;
  return row;
}

std::vector<BucketLayout> layOut(const std::vector<Member> &parameters, int64_t world, BucketLimit limit, int64_t align) {
  std::vector<BucketLayout> buckets;
  int64_t end = 0, beyond = 0; // elements of the open bucket, and those of them that joined it over the limit
  size_t largest = 0;          // of the open bucket
  auto close = [&] {
    if (buckets.empty()) return;
    BucketLayout &b = buckets.back();
    int64_t shard = (end + world - 1) / world;
    b.row = rowElements(shard, align);
    b.shard = roundUp(std::max<int64_t>(shard, 1), b.row);
  };
  auto joins = [&](size_t i) { // though the bucket is full with it
    const Member &next = parameters[i];
    if (end > limit.little) return beyond + next.elements <= limit.little && readsNear(next, parameters[largest]);
    const std::vector<size_t> &littles = buckets.back().members;
    return std::all_of(littles.begin(), littles.end(), [&](size_t little) { return readsNear(parameters[little], next); });
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    int64_t elements = parameters[i].elements;
    bool fits = end + elements <= limit.most;
    if (buckets.empty() || (!fits && !joins(i))) {
      close();
      buckets.emplace_back();
      end = beyond = 0;
      largest = i;
    }
    if (elements > parameters[largest].elements) largest = i;
    buckets.back().members.push_back(i);
    buckets.back().offsets.push_back(end);
    if (!fits && end > limit.little) beyond += elements;
    end = roundUp(end + elements, align);
  }
  close();
  return buckets;
}

} // namespace zero::shard

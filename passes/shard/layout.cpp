//===- layout.cpp - how parameters are laid out in buckets -----------------------------------------===//
#include "passes/shard/layout.h"
#include <algorithm>
#include <numeric>

namespace zero::shard {
namespace {
int64_t roundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
} // namespace

BucketLimit defaultLimit(int64_t total, int64_t tile, bool portions) {
  int64_t most = std::clamp<int64_t>(total / 16, 64 << 10, 8 << 20);
  BucketLimit limit = limitOf(tile ? std::min(most, tile) : most); // others need not be larger than what was cut for being large
  if (portions) limit.most = std::min(limit.most, std::max<int64_t>(1 << 20, total / 2048));
  return limit;
}

int64_t sliceElementsOf(int64_t shards) { return roundUp(std::clamp<int64_t>(shards / 256, 1 << 20, 64 << 20), 1 << 20); }

int64_t rowElements(int64_t shard, int64_t align) {
  int64_t row = align;
  while (row < 1024 && row * 2 * 1000 <= shard) row *= 2;
  return row;
}

std::vector<BucketLayout> layOut(const std::vector<int64_t> &sizes, int64_t world, BucketLimit limit, int64_t align) {
  std::vector<BucketLayout> buckets;
  int64_t end = 0, beyond = 0; // elements of the open bucket, and those of them that joined it over the limit
  auto close = [&] {
    if (buckets.empty()) return;
    BucketLayout &b = buckets.back();
    int64_t shard = (end + world - 1) / world;
    b.row = rowElements(shard, align);
    b.shard = roundUp(std::max<int64_t>(shard, 1), b.row);
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    bool fits = end + sizes[i] <= limit.most, joins = beyond + sizes[i] <= limit.little || end <= limit.little;
    if (buckets.empty() || (!fits && !joins)) {
      close();
      buckets.emplace_back();
      end = beyond = 0;
    }
    buckets.back().members.push_back(i);
    buckets.back().offsets.push_back(end);
    if (!fits && end > limit.little) beyond += sizes[i];
    end = roundUp(end + sizes[i], align);
  }
  close();
  return buckets;
}

BucketLayout layOutTable(int64_t rows, int64_t columns, int64_t world, int64_t align) {
  BucketLayout b{{0}, {0}, (rows + world - 1) / world * columns, 0};
  do {
    b.row = rowElements(b.shard, align);
    b.shard = roundUp(b.shard, std::lcm(columns, b.row));
  } while (rowElements(b.shard, align) != b.row);
  return b;
}

} // namespace zero::shard

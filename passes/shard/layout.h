//===- layout.h - how parameters are laid out in buckets, as plain data ---------------------------===//
#pragma once
#include <cstdint>
#include <vector>

namespace zero::shard {

/// Elements every parameter's start, and every shard, is a multiple of: 64 bytes of the smallest type that a bucket keeps.
inline constexpr int64_t alignElements(int64_t smallestBytes) { return 64 / smallestBytes; }

/// A bucket of fewer than 1 / kLittle of the largest costs a collective its latency and little else; it joins a neighbour instead.
inline constexpr int64_t kLittle = 64;

/// Elements: of the largest bucket made of several parameters, and of all that joins one which is full.
struct BucketLimit {
  int64_t most, little;
};
inline constexpr BucketLimit limitOf(int64_t most) { return {most, most / kLittle}; }

struct BucketLayout {
  std::vector<size_t> members;  // indices into the parameters given
  std::vector<int64_t> offsets; // first element of each member
  int64_t shard = 0;            // elements per rank
  int64_t row = 0;              // divides `shard`: columns of the matrix the optimizer sees
};

/// Largest bucket for a model of `total` elements whose largest tile has `tile` (0: none are cut): worth a collective's latency, or a GPU's
/// launches. `portions`: neither is to be worth its while, and buckets are only as large as keeps a disk busy and their number within
/// bounds, so that they come, are updated and go in small portions.
BucketLimit defaultLimit(int64_t total, int64_t tile, bool portions);

/// Columns of the optimizer's view of a shard of `shard` elements: a power of two from `align` to 1024 that keeps
/// rounding up to it below 0.1 % of the shard where the shard is large enough to allow it.
int64_t rowElements(int64_t shard, int64_t align);

/// Largest slice of a bucket that is fetched from another tier and updated at once, for one rank's `shards` elements in all: a few MiB keep
/// a disk busy, and the number of slices does not grow without bound.
int64_t sliceElementsOf(int64_t shards);

/// Cut parameters of the given sizes, in this order, into buckets of at most `limit.most` elements. A larger parameter is a bucket of its
/// own, and little ones (together at most `limit.little`) before or after a bucket that is full join it. Each starts at a multiple of
/// `align`.
std::vector<BucketLayout> layOut(const std::vector<int64_t> &sizes, int64_t world, BucketLimit limit, int64_t align);

/// A table of which ranks exchange rows, alone: shards are whole rows of it, and not more than what the optimizer's view needs beyond that.
BucketLayout layOutTable(int64_t rows, int64_t columns, int64_t world, int64_t align);

} // namespace zero::shard

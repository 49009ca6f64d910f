//===- layout_test.cpp - how parameters are laid out in buckets ----------------------------------------===//
#include "passes/shard/layout.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace zero::shard {
namespace {

constexpr int64_t kKi = 1 << 10, kMi = 1 << 20;

using Members = std::vector<std::vector<size_t>>;

Members membersOf(const std::vector<BucketLayout> &buckets) {
  Members members;
  for (const BucketLayout &bucket : buckets) members.push_back(bucket.members);
  return members;
}

TEST(Layout, ASixteenthOfTheModelIsABucketWithinBounds) {
  EXPECT_EQ(defaultLimit(64 * kMi, 0, false).most, 4 * kMi);
  EXPECT_EQ(defaultLimit(100, 0, false).most, 64 * kKi);
  EXPECT_EQ(defaultLimit(1000 * kMi, 0, false).most, 8 * kMi);
  EXPECT_EQ(defaultLimit(1000 * kMi, 2 * kMi, false).most, 2 * kMi) << "no larger than a tile";
  EXPECT_EQ(defaultLimit(1000 * kMi, 0, false).little, 128 * kKi);
}

TEST(Layout, OneRankHasSmallerBucketsAndTheSameLittleOnes) {
  EXPECT_EQ(defaultLimit(1000 * kMi, 0, true).most, kMi);
  EXPECT_EQ(defaultLimit(1000 * kMi, 0, true).little, defaultLimit(1000 * kMi, 0, false).little);
  EXPECT_EQ(defaultLimit(8 * kMi, 0, true).most, kMi / 2) << "a sixteenth of a small model is smaller still";
  EXPECT_EQ(defaultLimit(1000 * kMi, kMi / 4, true).most, kMi / 4);
  EXPECT_EQ(defaultLimit(2048 * 3 * kMi, 0, true).most, 3 * kMi) << "the number of buckets does not grow without bound";
  EXPECT_EQ(defaultLimit(2048 * 30 * kMi, 0, true).most, 8 * kMi);
}

TEST(Layout, ABucketClosesBeforeItsLimitAndALargerParameterIsAlone) {
  EXPECT_EQ(membersOf(layOut({40, 40, 40, 500, 40}, 1, {100, 0}, 1)), (Members{{0, 1}, {2}, {3}, {4}}));
}

TEST(Layout, ShardsOfATableAreWholeRows) {
  for (int64_t columns : {1, 3, 16, 100, 768, 4096})
    for (int64_t world : {1, 2, 3, 64})
      for (int64_t rows : {1, 100, 4097, 50257}) {
        BucketLayout table = layOutTable(rows, columns, world, 16);
        EXPECT_EQ(table.shard % columns, 0);
        EXPECT_EQ(table.shard % table.row, 0);
        EXPECT_EQ(table.row, rowElements(table.shard, 16)) << "what sees the shard later sees the same matrix";
        EXPECT_GE(table.shard * world, rows * columns);
        EXPECT_LT(table.shard, (rows + world - 1) / world * columns + std::lcm(columns, int64_t(1024)));
      }
}

TEST(Layout, LittleOnesJoinWhatIsFull) {
  EXPECT_EQ(membersOf(layOut({5, 500, 5, 6, 500}, 1, {100, 10}, 1)), (Members{{0, 1, 2}, {3, 4}})); // before it, after it, and no room
  EXPECT_EQ(membersOf(layOut({5, 500, 5, 6, 500}, 1, limitOf(100), 1)), (Members{{0}, {1}, {2, 3}, {4}}));
}

/// Every parameter lies in one bucket, in order, apart from the others; and buckets are no more than parameters and what is full together.
TEST(Layout, RandomModels) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> sizes(1 + random() % 40);
    for (int64_t &size : sizes) size = 1 + int64_t(random() % (random() % 4 ? 50 : 2000));
    int64_t world = 1 + random() % 4, align = 1 << random() % 5, total = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
    BucketLimit limit{1 + int64_t(random() % 1000), int64_t(random() % 20)};
    std::vector<BucketLayout> buckets = layOut(sizes, world, limit, align);
    size_t next = 0;
    for (const BucketLayout &bucket : buckets) {
      int64_t end = 0;
      for (size_t i = 0; i < bucket.members.size(); ++i) {
        EXPECT_EQ(bucket.members[i], next++);
        EXPECT_EQ(bucket.offsets[i] % align, 0);
        EXPECT_GE(bucket.offsets[i], end);
        end = bucket.offsets[i] + sizes[bucket.members[i]];
      }
      EXPECT_LE(end, bucket.shard * world);
      EXPECT_EQ(bucket.shard % bucket.row, 0);
    }
    EXPECT_EQ(next, sizes.size());
    int64_t large = std::count_if(sizes.begin(), sizes.end(), [&](int64_t size) { return 2 * (size + align) > limit.most; });
    EXPECT_LE(int64_t(buckets.size()), 2 * large + 4 * (total + align * int64_t(sizes.size())) / limit.most + 1);
  }
}

} // namespace
} // namespace zero::shard

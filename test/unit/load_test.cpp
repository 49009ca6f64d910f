//===- load_test.cpp - what is held in each step ----------------------------------------------------------===//
#include "passes/schedule/load.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace zero::schedule {
namespace {

TEST(Load, TheLargestSumOfAStretch) {
  Load load(5);
  load.add(0, 3, 10);
  load.add(2, 5, 7);
  EXPECT_EQ(load.most(0, 5), 17);
  EXPECT_EQ(load.most(0, 2), 10);
  EXPECT_EQ(load.most(3, 4), 7);
  load.add(2, 3, -17);
  EXPECT_EQ(load.most(2, 3), 0);
  EXPECT_EQ(load.most(0, 5), 10);
}

TEST(Load, AsOneNumberForEachStepSays) {
  std::mt19937 random(1);
  for (int64_t steps : {1, 2, 3, 17, 64, 100}) {
    Load load(steps);
    std::vector<int64_t> sums(size_t(steps), 0);
    for (int round = 0; round < 300; ++round) {
      auto from = int64_t(random() % uint64_t(steps)), to = from + 1 + int64_t(random() % uint64_t(steps - from));
      auto first = sums.begin() + from, last = sums.begin() + to;
      ASSERT_EQ(load.most(from, to), *std::max_element(first, last));
      auto bytes = int64_t(random() % 100);
      load.add(from, to, bytes);
      std::for_each(first, last, [&](int64_t &sum) { sum += bytes; });
    }
  }
}

} // namespace
} // namespace zero::schedule

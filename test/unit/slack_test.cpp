//===- slack_test.cpp - live ranges that leave other lanes time -------------------------------------------===//
#include "passes/place/slack.h"
#include <gtest/gtest.h>
#include <random>

namespace zero::place {
namespace {

OffsetBuffer buffer(int64_t bytes, int64_t first, int64_t last) { return {"b", Bytes(bytes), first, last}; }

std::vector<int64_t> liveBytes(const OffsetProblem &problem, int64_t steps) {
  std::vector<int64_t> live(size_t(steps), 0);
  for (const OffsetBuffer &buffer : problem.buffers)
    for (int64_t step = buffer.first; step <= buffer.last; ++step) live[size_t(step)] += buffer.size.count;
  return live;
}

TEST(Slack, StopsBeforeTheFullestStepAndAtItsReach) {
  // 100 bytes at steps 5 and 6; a write-back of 10 ends at step 1, a fetch of 10 begins at step 9.
  OffsetProblem problem{Bytes(1), {buffer(100, 5, 6), buffer(10, 1, 1), buffer(10, 9, 9)}};
  std::vector<TransferEnds> lanes{{false, false}, {false, true}, {true, false}};
  auto near = withSlack(problem, lanes, 12, 2).buffers;
  EXPECT_EQ(near[1].last, 3);
  EXPECT_EQ(near[2].first, 7);
  auto far = withSlack(problem, lanes, 12, 100).buffers;
  EXPECT_EQ(far[1].first, 1);
  EXPECT_EQ(far[1].last, 4); // at step 5 the sum would be above the largest
  EXPECT_EQ(far[2].first, 7);
  EXPECT_EQ(far[0].first, 5);
}

TEST(Slack, EndsWithTheProgram) {
  OffsetProblem problem{Bytes(1), {buffer(10, 0, 1), buffer(100, 1, 1), buffer(10, 2, 3)}};
  auto longer = withSlack(problem, {{true, true}, {}, {true, true}}, 4, 8).buffers;
  EXPECT_EQ(longer[0].first, 0);
  EXPECT_EQ(longer[2].last, 3);
}

TEST(Slack, KeepsWhatMustBeLiveAndTheLargestSum) {
  std::mt19937 random(7);
  int64_t longer = 0;
  for (int round = 0; round < 200; ++round) {
    int64_t steps = 5 + int64_t(random() % 40);
    OffsetProblem problem{Bytes(1), {}};
    std::vector<TransferEnds> lanes(1 + random() % 12);
    for (TransferEnds &lane : lanes) {
      auto first = int64_t(random() % unsigned(steps));
      problem.buffers.push_back(buffer(1 + int64_t(random() % 100), first, std::min(steps - 1, first + int64_t(random() % 10))));
      lane = {random() % 2 == 0, random() % 2 == 0};
    }
    OffsetProblem slack = withSlack(problem, lanes, steps, 6);
    auto was = liveBytes(problem, steps), is = liveBytes(slack, steps);
    int64_t peak = *std::max_element(was.begin(), was.end());
    for (size_t step = 0; step < was.size(); ++step) EXPECT_TRUE(is[step] < peak || is[step] == was[step]) << "at step " << step;
    for (size_t i = 0; i < lanes.size(); ++i) {
      int64_t earlier = problem.buffers[i].first - slack.buffers[i].first, later = slack.buffers[i].last - problem.buffers[i].last;
      EXPECT_GE(earlier, 0);
      EXPECT_GE(later, 0);
      EXPECT_LE(earlier, lanes[i].begins ? 6 : 0);
      EXPECT_LE(later, lanes[i].ends ? 6 : 0);
      longer += earlier + later;
    }
  }
  EXPECT_GT(longer, 1000);
}

} // namespace
} // namespace zero::place

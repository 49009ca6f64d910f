//===- reuse_test.cpp - the bytes that transfers are given ------------------------------------------------===//
#include "passes/place/reuse.h"
#include <gtest/gtest.h>
#include <random>

namespace zero::place {
namespace {

OffsetBuffer buffer(int64_t bytes, int64_t first, int64_t last) { return {"b", Bytes(bytes), first, last}; }

OffsetSolution at(std::vector<int64_t> offsets, int64_t height) {
  OffsetSolution solution;
  for (int64_t offset : offsets) solution.offsets.push_back(Bytes(offset));
  solution.height = Bytes(height);
  return solution;
}

/// The fewest steps between a copy and what uses the same bytes next to it, in the next step of training if need be; `steps` if nothing
/// does.
int64_t leastRest(const OffsetProblem &problem, const std::vector<TransferEnds> &lanes, int64_t steps, const OffsetSolution &solution) {
  auto endOf = [&](size_t i) { return solution.offsets[i] + problem.buffers[i].size.alignedTo(problem.alignment); };
  int64_t rest = steps;
  for (size_t a = 0; a < lanes.size(); ++a)
    for (size_t b = 0; b < lanes.size(); ++b) {
      bool shared = a != b && solution.offsets[a] < endOf(b) && solution.offsets[b] < endOf(a);
      if (!shared || !(lanes[a].ends || lanes[b].begins)) continue; // no copy where b follows a
      int64_t between = problem.buffers[b].first - problem.buffers[a].last;
      rest = std::min(rest, between > 0 ? between : between + steps);
    }
  return rest;
}

/// Uniform in [0, n).
int64_t below(std::mt19937 &random, int64_t n) { return int64_t(random() % uint64_t(n)); }

/// Live somewhere in `steps` steps, for at most `longest`, of 1 to `most` units of `unit` bytes.
std::vector<OffsetBuffer> randomBuffers(std::mt19937 &random, int64_t count, int64_t steps, int64_t unit, int64_t most, int64_t longest) {
  std::vector<OffsetBuffer> buffers;
  for (int64_t i = 0; i < count; ++i) {
    int64_t first = below(random, steps), last = std::min(steps - 1, first + below(random, longest));
    buffers.push_back(buffer(unit * (1 + below(random, most)), first, last));
  }
  return buffers;
}

TEST(Reuse, AFetchGoesWhereNobodyWasForLongest) {
  // Bytes 0 to 100 are free from step 9 on, 100 to 200 from step 3 on; the fetch of step 10 was given the first.
  OffsetProblem problem{Bytes(1), {buffer(100, 0, 8), buffer(100, 0, 2), buffer(100, 10, 11)}};
  OffsetSolution solution = at({0, 100, 0}, 200);
  restBytes(problem, {{}, {}, {true, false}}, 12, Bytes(200), solution);
  EXPECT_EQ(solution.offsets[2], Bytes(100));
  EXPECT_EQ(solution.offsets[0], Bytes(0)); // no copy begins or ends it
  EXPECT_EQ(solution.height, Bytes(200));
}

TEST(Reuse, WhatFollowsAWriteBackHasToWaitForIt) {
  OffsetProblem problem{Bytes(1), {buffer(100, 0, 1), buffer(100, 2, 9), buffer(100, 5, 9)}};
  OffsetSolution solution = at({0, 0, 100}, 200); // the write-back ends at step 1, and somebody begins at step 2 or at step 5
  restBytes(problem, {{false, true}, {}, {}}, 12, Bytes(200), solution);
  EXPECT_EQ(solution.offsets[0], Bytes(100));
}

TEST(Reuse, CountsOverTheEndOfTheStep) {
  // What the fetch of step 1 follows is in the step before: until its step 11 at 0, until its step 4 at 100.
  OffsetProblem problem{Bytes(1), {buffer(100, 8, 11), buffer(100, 3, 4), buffer(100, 1, 2)}};
  OffsetSolution solution = at({0, 100, 0}, 200);
  std::vector<TransferEnds> lanes{{}, {}, {true, false}};
  EXPECT_EQ(leastRest(problem, lanes, 12, solution), 2);
  restBytes(problem, lanes, 12, Bytes(200), solution);
  EXPECT_EQ(solution.offsets[2], Bytes(100));
  EXPECT_EQ(leastRest(problem, lanes, 12, solution), 9);
}

/// Against every offset that there is.
TEST(Reuse, OfOneBufferNoPlaceIsBetter) {
  std::mt19937 random(3);
  int64_t moved = 0;
  for (int round = 0; round < 300; ++round) {
    int64_t steps = 4 + below(random, 30), count = 2 + below(random, 14);
    OffsetProblem problem{Bytes(4), randomBuffers(random, count, steps, 1, 40, 6)};
    std::vector<TransferEnds> lanes(problem.buffers.size());
    auto index = size_t(below(random, int64_t(lanes.size())));
    lanes[index] = {random() % 2 == 0, random() % 2 == 0};
    OffsetSolution solution = solveOffsets(problem), found = solution;
    Bytes height = solution.height + Bytes(4 * below(random, 20));
    restBytes(problem, lanes, steps, height, found);
    EXPECT_EQ(checkOffsets(problem, found), "");
    int64_t best = 0;
    for (Bytes at; at + problem.buffers[index].size.alignedTo(Bytes(4)) <= height; at += Bytes(4)) {
      OffsetSolution tried = solution;
      tried.offsets[index] = at, tried.height = height;
      if (checkOffsets(problem, tried).empty()) best = std::max(best, leastRest(problem, lanes, steps, tried));
    }
    EXPECT_EQ(leastRest(problem, lanes, steps, found), lanes[index].begins || lanes[index].ends ? best : steps);
    moved += found.offsets != solution.offsets;
  }
  EXPECT_GT(moved, 50);
}

TEST(Reuse, NeverRestsLessOrHigher) {
  std::mt19937 random(5);
  int64_t better = 0;
  for (int round = 0; round < 100; ++round) {
    int64_t steps = 20 + below(random, 60), count = 20 + below(random, 60);
    OffsetProblem problem;
    problem.buffers = randomBuffers(random, count, steps, 64, 10, 10);
    std::vector<TransferEnds> lanes(problem.buffers.size());
    for (TransferEnds &lane : lanes) lane = {random() % 4 == 0, random() % 4 == 0};
    OffsetSolution solution = solveOffsets(problem), found = solution;
    restBytes(problem, lanes, steps, solution.height, found);
    EXPECT_EQ(checkOffsets(problem, found), "");
    EXPECT_LE(found.height, solution.height);
    int64_t was = leastRest(problem, lanes, steps, solution), is = leastRest(problem, lanes, steps, found);
    EXPECT_GE(is, was);
    better += is > was;
    for (size_t i = 0; i < lanes.size(); ++i) EXPECT_TRUE(lanes[i].begins || lanes[i].ends || found.offsets[i] == solution.offsets[i]);
  }
  EXPECT_GT(better, 10);
}

} // namespace
} // namespace zero::place

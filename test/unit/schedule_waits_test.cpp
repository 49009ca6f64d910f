// Waits: that they order every conflict, that none is superfluous, and that missing ones would be noticed.
#include "passes/place/past.h"
#include <gtest/gtest.h>
#include <random>

using namespace zero::place;

namespace {

MemoryAccess reads(int64_t begin, int64_t end) { return {0, begin, end, false}; }
MemoryAccess writes(int64_t begin, int64_t end) { return {0, begin, end, true}; }

/// The first pair of steps (early, late) that conflict and are not ordered; {-1, -1} if there is none.
std::pair<int, int> firstRace(const std::vector<LaneStep> &steps, const std::vector<std::vector<LaneWait>> &waits) {
  auto clocks = clocksOf(steps, waits);
  if (clocks.size() != steps.size()) return {-2, -2};
  std::vector<int64_t> ticks;
  std::array<int64_t, kLanes> count{};
  for (const LaneStep &step : steps) ticks.push_back(++count[step.lane]);
  for (size_t late = 0; late < steps.size(); ++late)
    for (size_t early = 0; early < late; ++early)
      for (const MemoryAccess &a : steps[early].accesses)
        for (const MemoryAccess &b : steps[late].accesses)
          if (steps[early].lane != steps[late].lane && (a.writes || b.writes) && a.arena == b.arena && a.begin < b.end && b.begin < a.end &&
              clocks[late][steps[early].lane] < ticks[early])
            return {int(early), int(late)};
  return {-1, -1};
}

TEST(Waits, WriteThenReadThenWrite) {
  std::vector<LaneStep> steps{{1, {writes(0, 64)}}, {0, {reads(0, 32)}}, {0, {reads(32, 64)}}, {1, {writes(0, 64)}}};
  auto waits = findWaits(steps);
  EXPECT_EQ(waits[1], (std::vector<LaneWait>{{1, 1}}));
  EXPECT_TRUE(waits[2].empty()); // lane order says it already
  EXPECT_EQ(waits[3], (std::vector<LaneWait>{{0, 2}}));
}

TEST(Waits, ReadersDoNotWaitForReaders) {
  auto waits = findWaits({{0, {reads(0, 64)}}, {1, {reads(0, 64)}}, {2, {reads(0, 64)}}});
  EXPECT_TRUE(waits[1].empty() && waits[2].empty());
}

TEST(Waits, NeighboursDoNotConflict) {
  auto waits = findWaits({{0, {writes(0, 64)}}, {1, {writes(64, 128)}}, {2, {{1, 0, 64, true}}}});
  EXPECT_TRUE(waits[1].empty() && waits[2].empty());
}

TEST(Waits, WhatFollowsFromOthersIsLeftOut) {
  // 2 needs 0 and 1, but 1 has waited for 0.
  auto waits = findWaits({{0, {writes(0, 64)}}, {1, {reads(0, 64), writes(64, 128)}}, {2, {reads(0, 128)}}});
  EXPECT_EQ(waits[1], (std::vector<LaneWait>{{0, 1}}));
  EXPECT_EQ(waits[2], (std::vector<LaneWait>{{1, 1}}));
}

TEST(Waits, ReuseOfAPartOfMemory) {
  // The reader of the second half is not in the way of who takes the first.
  auto waits = findWaits({{0, {writes(0, 128)}}, {1, {reads(0, 64)}}, {2, {reads(64, 128)}}, {0, {writes(0, 64)}}});
  EXPECT_EQ(waits[3], (std::vector<LaneWait>{{1, 1}}));
}

TEST(Waits, WaitingForTheFutureIsNoClock) {
  EXPECT_TRUE(clocksOf({{0, {}}, {1, {}}}, {{{1, 1}}, {}}).empty());
  EXPECT_EQ(clocksOf({{0, {}}, {1, {}}}, {{}, {{0, 1}}}).size(), 2u);
}

std::vector<LaneStep> randomSteps(std::mt19937 &random, int count) {
  std::vector<LaneStep> steps;
  for (int i = 0; i < count; ++i) {
    LaneStep step{int(random() % 4), {}};
    for (int a = 0; a < 2; ++a) {
      int64_t begin = 4 * (random() % 40);
      step.accesses.push_back({int(random() % 2), begin, begin + 4 + 4 * int64_t(random() % 10), random() % 3 == 0});
    }
    steps.push_back(step);
  }
  return steps;
}

TEST(Waits, RandomProgramsHaveNoRaceAndNoSuperfluousWait) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<LaneStep> steps = randomSteps(random, 60);
    auto waits = findWaits(steps);
    EXPECT_EQ(firstRace(steps, waits), std::pair(-1, -1)) << "seed " << seed;
    for (size_t i = 0; i < steps.size(); ++i)
      for (size_t w = 0; w < waits[i].size(); ++w) {
        auto fewer = waits;
        fewer[i].erase(fewer[i].begin() + w);
        EXPECT_NE(firstRace(steps, fewer), std::pair(-1, -1)) << "seed " << seed << ": step " << i << " need not wait";
      }
  }
}

/// One program after another, as one: the lanes of the second go on from those of the first.
struct Unrolled {
  std::vector<LaneStep> steps;
  std::vector<std::vector<LaneWait>> waits;
};
Unrolled unroll(const std::vector<LaneStep> &before, const std::vector<LaneStep> &next, const std::vector<std::vector<LaneWait>> &entry) {
  Unrolled both{before, findWaits(before)};
  Clock count{};
  for (const LaneStep &step : before) ++count[step.lane];
  auto own = findWaits(next);
  for (size_t i = 0; i < next.size(); ++i) {
    both.steps.push_back(next[i]);
    for (LaneWait &wait : own[i]) wait.tick += count[wait.lane];
    own[i].insert(own[i].end(), entry[i].begin(), entry[i].end());
    both.waits.push_back(own[i]);
  }
  return both;
}

TEST(EntryWaits, LaneOrderReachesAcrossTheBoundary) {
  // Compute has read what the other lane brought: the next program may bring the same bytes after that, and compute itself need not wait.
  std::vector<LaneStep> steps{{1, {writes(0, 64)}}, {0, {reads(0, 64), writes(64, 128)}}};
  Past past;
  auto waits = findWaits(steps, past);
  auto entry = findEntryWaits(past, steps, waits);
  EXPECT_EQ(entry[0], (std::vector<LaneWait>{{0, 1}}));
  EXPECT_TRUE(entry[1].empty());
}

TEST(EntryWaits, WhatIsKnownByItsOwnProgramIsLeftOut) {
  // Lane 2 takes away what compute has written. Compute of the next program waits for it, and so does what compute is waited for by.
  std::vector<LaneStep> steps{{0, {writes(0, 64)}}, {2, {reads(0, 64), writes(64, 128)}}};
  Past past;
  auto waits = findWaits(steps, past);
  auto entry = findEntryWaits(past, {{0, {writes(0, 64)}}, {1, {reads(0, 64), reads(64, 128)}}}, {{}, {{0, 1}}});
  EXPECT_EQ(entry[0], (std::vector<LaneWait>{{2, 1}}));
  EXPECT_TRUE(entry[1].empty());
}

TEST(EntryWaits, RandomPairsHaveNoRaceAndNoSuperfluousWait) {
  size_t found = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<LaneStep> before = randomSteps(random, 30), next = seed % 3 ? randomSteps(random, 30) : before;
    Past past;
    findWaits(before, past);
    auto entry = findEntryWaits(past, next, findWaits(next));
    Unrolled both = unroll(before, next, entry);
    EXPECT_EQ(firstRace(both.steps, both.waits), std::pair(-1, -1)) << "seed " << seed;
    for (size_t i = 0; i < next.size(); ++i)
      for (size_t w = 0; w < entry[i].size(); ++w, ++found) {
        auto fewer = entry;
        fewer[i].erase(fewer[i].begin() + w);
        Unrolled racing = unroll(before, next, fewer);
        EXPECT_NE(firstRace(racing.steps, racing.waits), std::pair(-1, -1)) << "seed " << seed << ": step " << i << " need not wait";
        auto earlier = entry;
        --earlier[i][w].tick;
        racing = unroll(before, next, earlier);
        EXPECT_NE(firstRace(racing.steps, racing.waits), std::pair(-1, -1)) << "seed " << seed << ": step " << i << " may wait for less";
      }
  }
  EXPECT_GT(found, 100u);
}

} // namespace

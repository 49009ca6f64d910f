// Offsets: the solvers against the lower bound and the check, the check against wrong answers, the text form.
#include "passes/place/offsets.h"
#include "passes/place/placed.h"
#include <gtest/gtest.h>
#include <random>

using namespace zero::place;

namespace {

OffsetProblem problem(std::initializer_list<OffsetBuffer> buffers) {
  OffsetProblem p;
  p.buffers = buffers;
  return p;
}

/// Lives of a training step: activations of a layer wait for its backward, temporaries do not, gradients live shortly.
OffsetProblem trainingStep(int layers, unsigned seed) {
  std::mt19937 random(seed);
  auto between = [&](int low, int high) { return int64_t(low + random() % (high - low + 1)); };
  OffsetProblem p;
  int steps = layers * 10;
  for (int layer = 0; layer < layers; ++layer)
    for (int i = 0; i < 5; ++i) {
      int64_t forward = layer * 10 + i * 2, backward = 2 * steps - forward;
      std::string name = std::to_string(layer) + "." + std::to_string(i);
      p.buffers.push_back({"saved" + name, Bytes(64 * between(10, 200)), forward, backward});
      p.buffers.push_back({"temporary" + name, Bytes(64 * between(1, 300)), forward, forward + between(1, 3)});
      p.buffers.push_back({"gathered" + name, Bytes(64 * 400), forward, forward + 4});
      p.buffers.push_back({"gradient" + name, Bytes(64 * between(10, 300)), backward, backward + between(1, 8)});
    }
  return p;
}

TEST(Offsets, LivesAreInclusive) {
  // b starts in the step in which a ends: they meet. c starts one step later: it may take a's place.
  auto p = problem({{"a", Bytes(64), 0, 1}, {"b", Bytes(64), 1, 2}, {"c", Bytes(64), 2, 3}});
  EXPECT_EQ(largestLive(p, p.alignment).count, 128);
  auto s = solveOffsets(p);
  EXPECT_EQ(s.height.count, 128);
  EXPECT_NE(s.offsets[0], s.offsets[1]);
  EXPECT_EQ(s.offsets[0], s.offsets[2]);
}

TEST(Offsets, AlignsAndReportsTheTrueBound) {
  auto p = problem({{"a", Bytes(1), 0, 0}, {"b", Bytes(65), 0, 0}});
  EXPECT_EQ(largestLive(p, Bytes(1)).count, 66);
  EXPECT_EQ(largestLive(p, p.alignment).count, 192);
  auto s = solveOffsets(p);
  EXPECT_EQ(s.height.count, 192);
  EXPECT_EQ(checkOffsets(p, s), "");
}

TEST(Offsets, TrainingStepsReachTwoPercent) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    auto p = trainingStep(24, seed);
    auto s = solveOffsets(p);
    EXPECT_EQ(checkOffsets(p, s), "");
    EXPECT_LE(s.height.count, largestLive(p, p.alignment).count * 1.02) << "seed " << seed << " by " << s.solver;
  }
}

TEST(Offsets, TheSameProblemHasTheSameAnswer) {
  auto p = trainingStep(12, 3);
  EXPECT_EQ(solveOffsets(p).offsets, solveOffsets(p).offsets);
}

/// Against a list of all of them.
TEST(PlacedBuffers, AreVisitedLowestFirstWhereTheirLiveRangesMeet) {
  struct Plain {
    int64_t begin, end;
    int32_t first, last;
  };
  std::mt19937 random(11);
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  size_t seen = 0;
  for (int round = 0; round < 40; ++round) {
    PlacedBuffers index(round % 2 ? 1000 : 10000, 5000); // one slice, several at each of some scales
    std::vector<Plain> all;
    for (int count = 1 + below(1000); count > 0; --count) {
      int first = below(3000);
      Plain one{64 * below(200), 0, first, first + below(below(4) ? 8 : 2000)}; // often at the same byte as another
      one.end = one.begin + 64 * below(20);
      index.add(Bytes(one.begin), Bytes(one.end), one.first, one.last);
      all.insert(std::upper_bound(all.begin(), all.end(), one, [](const Plain &a, const Plain &b) { return a.begin < b.begin; }), one);
      int32_t from = below(3000), to = from + below(below(2) ? 50 : 500);
      size_t stop = size_t(below(2) ? 1 + below(20) : 100000); // some do not want all of them
      std::vector<std::pair<int64_t, int64_t>> expected, found;
      for (const Plain &other : all)
        if (other.first <= to && from <= other.last && expected.size() < stop) expected.push_back({other.begin, other.end});
      index.visit(from, to, -1, [&](Bytes begin, Bytes end) {
        EXPECT_TRUE(found.empty() || found.back().first <= begin.count);
        found.push_back({begin.count, end.count});
        return found.size() < stop;
      });
      if (stop < all.size()) { // which of those at one byte are seen is open
        for (auto *list : {&found, &expected})
          for (auto &range : *list) range.second = 0;
      }
      std::sort(found.begin(), found.end()), std::sort(expected.begin(), expected.end());
      ASSERT_EQ(found, expected);
      seen += found.size();
    }
  }
  EXPECT_GT(seen, 100000u);
}

// Two that are in use beside the next run do not meet there: in this one b comes after a. What is live at its beginning shares with
// neither.
TEST(Offsets, BuffersAreInUseBesideTheNextRun) {
  auto p = problem({{"forward", Bytes(64), 0, 1}, {"later", Bytes(64), 3, 4}, {"a", Bytes(64), 6, 7, 1}, {"b", Bytes(64), 8, 9, 2}});
  EXPECT_EQ(liveBytes(p, p.alignment), (std::vector<int64_t>{128, 128, 64, 64, 64, 0, 64, 64, 64, 64}));
  auto s = solveOffsets(p);
  EXPECT_EQ(checkOffsets(p, s), "");
  EXPECT_EQ(s.height.count, 128);
  EXPECT_EQ(s.offsets[2], s.offsets[3]);
  s.offsets[3] = s.offsets[0];
  EXPECT_EQ(checkOffsets(p, s), "buffers b and forward are in use together when the program runs again, and share bytes");
  p.buffers[1].first = 2;
  s.offsets = {Bytes(0), Bytes(64), Bytes(64), Bytes(64)};
  EXPECT_EQ(checkOffsets(p, s), "buffers b and later are in use together when the program runs again, and share bytes");
}

TEST(Offsets, RandomBuffersBesideTheNextRun) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    OffsetProblem p = trainingStep(3, unsigned(round));
    int64_t steps = 0;
    for (const OffsetBuffer &buffer : p.buffers) steps = std::max(steps, buffer.last + 1);
    for (OffsetBuffer &buffer : p.buffers)
      if (buffer.first > steps / 2 && random() % 2) buffer.nextLast = int64_t(random() % size_t(steps / 2));
    OffsetSolution s = solveOffsets(p);
    EXPECT_EQ(checkOffsets(p, s), "");
    EXPECT_LE(largestLive(p, p.alignment), s.height);
    EXPECT_LE(s.height.count, largestLive(p, p.alignment).count * 5 / 4);
  }
}

// So many that one attempt is all there is time for, and it is not near the bound.
TEST(Offsets, OfVeryManyBuffersOneAttemptWillDo) {
  std::mt19937 random(2);
  OffsetProblem p;
  for (int64_t i = 0; i < 46000; ++i)
    p.buffers.push_back({"b", Bytes(64 * int64_t(1 + random() % 100)), i / 2, i / 2 + int64_t(random() % 20)});
  OffsetSolution s = solveOffsets(p);
  EXPECT_EQ(s.solver, "size, best fit");
  EXPECT_EQ(checkOffsets(p, s), "");
  EXPECT_GT(s.height.count, largestLive(p, p.alignment).count * 501 / 500);
}

// What is low enough is not made lower, and what cannot be is not tried.
TEST(Offsets, NoSearchWithoutNeed) {
  auto p = trainingStep(24, 1);
  OffsetSolution lowest = solveOffsets(p), enough = solveOffsets(p, Bytes(INT64_MAX), Bytes(INT64_MAX)),
                 never = solveOffsets(p, largestLive(p, p.alignment) - Bytes(1));
  EXPECT_EQ(checkOffsets(p, enough), "");
  EXPECT_EQ(enough.solver, "size, best fit");
  EXPECT_LT(lowest.height, enough.height);
  EXPECT_EQ(checkOffsets(p, never), "");
  EXPECT_EQ(never.solver.find("improved"), std::string::npos);
}

TEST(Offsets, EmptyProblem) {
  auto s = solveOffsets({});
  EXPECT_EQ(s.height.count, 0);
  EXPECT_EQ(checkOffsets({}, s), "");
}

TEST(Offsets, CheckRejectsWrongAnswers) {
  auto p = problem({{"a", Bytes(128), 0, 4}, {"b", Bytes(64), 4, 6}});
  OffsetSolution s;
  s.height = Bytes(192);
  s.offsets = {Bytes(0), Bytes(64)};
  EXPECT_EQ(checkOffsets(p, s), "buffers a and b are both live in step 4 and share byte 64");
  s.offsets = {Bytes(0), Bytes(96)};
  EXPECT_NE(checkOffsets(p, s).find("not aligned"), std::string::npos);
  s.offsets = {Bytes(0), Bytes(192)};
  EXPECT_NE(checkOffsets(p, s).find("leaves the arena"), std::string::npos);
  s.offsets = {Bytes(0)};
  EXPECT_EQ(checkOffsets(p, s), "2 buffers but 1 offsets");
  s.offsets = {Bytes(0), Bytes(128)};
  EXPECT_EQ(checkOffsets(p, s), "");
}

TEST(Offsets, TextForm) {
  auto p = parseOffsetProblem("# a comment\nx 100 0 4\n\ny 64 2 2 # another\n");
  ASSERT_EQ(p.buffers.size(), 2u);
  EXPECT_EQ(p.buffers[1].name, "y");
  EXPECT_EQ(print(p), "alignment 64\n# name size first last\nx 100 0 4\ny 64 2 2\n");
  EXPECT_EQ(print(parseOffsetProblem(print(p))), print(p));
  EXPECT_EQ(print(parseOffsetProblem("x 100 0 4 2\n")), "alignment 64\n# name size first last\nx 100 0 4 2\n");
  EXPECT_THROW(parseOffsetProblem("x 100 0 4 two\n"), std::runtime_error);
  EXPECT_THROW(parseOffsetProblem("x 100 4 0\n"), std::runtime_error);
  EXPECT_THROW(parseOffsetProblem("x 100\n"), std::runtime_error);
  EXPECT_THROW(parseOffsetProblem("alignment 0\n"), std::runtime_error);
  EXPECT_EQ(parseOffsetProblem("alignment 0 0 1\n").buffers.size(), 1u); // a name like another
}

// What a disk reads directly starts at a page of it, whatever lies before.
TEST(Offsets, AlignmentIsPartOfTheProblem) {
  auto p = parseOffsetProblem("alignment 4096\nx 100 0 4\ny 64 2 2\nz 5000 3 3\n");
  OffsetSolution s = solveOffsets(p);
  EXPECT_EQ(checkOffsets(p, s), "");
  for (Bytes offset : s.offsets) EXPECT_EQ(offset.count % 4096, 0);
  EXPECT_EQ(s.height.count, 3 * 4096);
  s.offsets[1] = Bytes(64);
  EXPECT_NE(checkOffsets(p, s).find("not aligned to 4096"), std::string::npos);
}

} // namespace

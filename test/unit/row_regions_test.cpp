// Which parts of a graph nn-tile-tokens does tile by tile, on plain data.
#include "passes/train/row_regions.h"
#include <gtest/gtest.h>

using namespace zero::train;

namespace {

/// A graph that is written down step by step.
struct Graph {
  std::vector<RowStep> steps;
  std::vector<RowTensor> tensors;

  uint32_t input(uint64_t width) {
    tensors.push_back({width});
    return uint32_t(tensors.size() - 1);
  }
  /// Yields the tensor that the step makes.
  uint32_t step(std::vector<uint32_t> rows, uint64_t width, bool widens = false, bool splits = true) {
    uint32_t result = input(width);
    steps.push_back({splits, widens, std::move(rows), {}, {result}});
    return result;
  }
  uint32_t product(uint32_t x, uint64_t width) { return step({x}, width, true); }
  uint32_t attention(std::vector<uint32_t> rows, uint64_t width) { return step(std::move(rows), width, false, false); }
  std::vector<RowRegion> found() const { return findRowRegions(steps, tensors); }
};

using Found = std::vector<RowRegion>;

} // namespace

TEST(RowRegions, AreAnMlpAndNotWhatAttentionReads) {
  Graph g;
  uint32_t x = g.input(8);
  uint32_t qkv = g.product(x, 24);                                           // 0: leaves as wide as it is
  uint32_t q = g.step({qkv}, 8), k = g.step({qkv}, 8), v = g.step({qkv}, 8); // 1, 2, 3
  uint32_t y = g.product(g.attention({q, k, v}, 8), 8);                      // 4, 5
  uint32_t sum = g.step({x, y}, 8);                                          // 6
  uint32_t gelu = g.step({g.product(sum, 32)}, 32);                          // 7, 8
  uint32_t down = g.product(gelu, 8);                                        // 9
  g.tensors[g.step({sum, down}, 8)].returned = true;                         // 10
  EXPECT_EQ(g.found(), (Found{{7, 8, 9}}));
}

TEST(RowRegions, TakeBothProductsOfAGateAndTheNormBefore) {
  Graph g;
  uint32_t x = g.attention({}, 8);                   // 0
  uint32_t n = g.step({x}, 8);                       // 1: nothing else reads it
  uint32_t gate = g.step({g.product(n, 21)}, 21);    // 2, 3
  uint32_t up = g.product(n, 21);                    // 4
  uint32_t y = g.product(g.step({gate, up}, 21), 8); // 5, 6
  g.tensors[g.step({x, y}, 8)].returned = true;      // 7
  EXPECT_EQ(g.found(), (Found{{1, 2, 3, 4, 5, 6}}));
  g.tensors[n].returned = true; // then it exists whole in any case
  EXPECT_EQ(g.found(), (Found{{2, 3, 4, 5, 6}}));
}

TEST(RowRegions, EndInASum) {
  Graph g;
  uint32_t x = g.attention({}, 8);
  uint32_t logits = g.product(x, 50);             // 1
  g.tensors[g.step({logits}, 0)].returned = true; // 2: the loss has no rows
  EXPECT_EQ(g.found(), (Found{{1, 2}}));
  g.tensors[logits].returned = true; // somebody reads the logits
  EXPECT_EQ(g.found(), Found{});
}

TEST(RowRegions, HaveNothingBetweenThatLooksAtOtherRows) {
  for (bool splits : {true, false}) {
    Graph g;
    uint32_t x = g.attention({}, 8);
    uint32_t wide = g.product(x, 32);                 // 1
    uint32_t row = g.step({wide}, 1);                 // 2: a number for each row
    uint32_t other = g.step({row}, 1, false, splits); // 3
    uint32_t repeated = g.step({other}, 32);          // 4
    uint32_t scaled = g.step({wide, repeated}, 32);   // 5
    g.tensors[g.product(scaled, 8)].returned = true;  // 6
    EXPECT_EQ(g.found(), splits ? (Found{{1, 2, 3, 4, 5, 6}}) : Found{});
  }
}

TEST(RowRegions, MakeForThemselvesWhatIsMadeOfNothing) {
  Graph g;
  uint32_t x = g.attention({}, 8), y = x;
  uint32_t bias = g.step({}, 32);                                                                                   // 1: one for both
  for (int layer = 0; layer < 2; ++layer) y = g.attention({g.product(g.step({g.product(y, 32), bias}, 32), 8)}, 8); // 2 3 4, 6 7 8
  EXPECT_EQ(g.found(), (Found{{1, 2, 3, 4}, {1, 6, 7, 8}}));
}

TEST(RowRegions, ReadNothingOfTheirOwnAsAWhole) {
  Graph g;
  uint32_t x = g.attention({}, 8);
  uint32_t wide = g.product(x, 32); // 1
  uint32_t y = g.product(wide, 8);  // 2
  g.steps[2].wholes = {wide};       // as a weight that is computed from the same rows
  g.tensors[y].returned = true;
  EXPECT_EQ(g.found(), Found{});
}

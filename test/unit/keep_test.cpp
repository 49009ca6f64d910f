// What is kept for backward (passes/fuse/keep.h): blocks of a chain, and the choice against all choices there are.
#include "passes/fuse/keep.h"
#include <gtest/gtest.h>
#include <optional>
#include <random>

namespace zero::fuse {
namespace {

Made one(uint64_t bytes, uint64_t cost, std::vector<uint32_t> needs, uint64_t kind = 0, bool read = true) {
  return {bytes, cost, std::move(needs), kind, read};
}

/// Pre-norm layers x -> norm -> product -> wide -> back + x; backward reads x, norm and wide.
std::vector<Made> layers(uint32_t count, uint64_t bytes) {
  std::vector<Made> forward{one(bytes, 1, {}, 1)};
  for (uint32_t l = 0; l < count; ++l) {
    uint32_t x = uint32_t(forward.size()) - 1;
    forward.push_back(one(bytes / 64, 2, {x}, 2));
    forward.push_back(one(bytes, 2, {x, x + 1}, 3));
    forward.push_back(one(4 * bytes, 100, {x + 2}, 4));
    forward.push_back(one(4 * bytes, 8, {x + 3}, 5, false));
    forward.push_back(one(bytes, 100, {x + 4}, 6, false));
    forward.push_back(one(bytes, 2, {x, x + 5}, 7));
  }
  uint32_t x = uint32_t(forward.size()) - 1;
  forward.push_back(one(8 * bytes, 500, {x}, 8));
  forward.push_back(one(4, 1, {x + 1}, 9, false));
  return forward;
}

TEST(Blocks, EndWhereAPatternRepeats) {
  auto ends = blockEnds(layers(5, 1024));
  std::vector<uint32_t> wanted{1};
  for (uint32_t l = 0; l < 5; ++l) wanted.push_back(wanted.back() + 6);
  wanted.push_back(wanted.back() + 2);
  EXPECT_EQ(ends, wanted);
}

/// Two narrow places in each layer are one block, and of these the narrower one ends it.
TEST(Blocks, HoldTheWholePattern) {
  std::vector<Made> forward{one(100, 1, {}, 1)};
  for (uint32_t l = 0; l < 4; ++l) {
    uint32_t x = uint32_t(forward.size()) - 1;
    forward.push_back(one(400, 1, {x}, 2));
    forward.push_back(one(120, 1, {x + 1}, 3)); // narrow, not the narrowest
    forward.push_back(one(300, 1, {x + 2}, 4));
    forward.push_back(one(100, 1, {x + 3}, 5));
  }
  EXPECT_EQ(blockEnds(forward), (std::vector<uint32_t>{1, 5, 9, 13, 17}));
  forward.insert(forward.begin(), one(7, 1, {}, 9)); // what all layers read adds a cut of the first one, no more
  for (size_t i = 1; i < forward.size(); ++i) {
    for (uint32_t &need : forward[i].needs) ++need;
    if (forward[i].kind == 2) forward[i].needs.push_back(0);
  }
  EXPECT_EQ(blockEnds(forward), (std::vector<uint32_t>{1, 4, 6, 10, 14, 18}));
}

TEST(Keep, InputsOfLayersAreTheLeast) {
  auto forward = layers(12, 1024);
  auto ends = blockEnds(forward);
  Keeping full = keep(forward, ends, 0);
  EXPECT_EQ(full.bytes, 13 * 1024 + 8 * 1024);
  EXPECT_EQ(full.blocks, 12u);
  EXPECT_EQ(full.cost, 12u * (2 + 2 + 100)); // nothing that leads to the next input alone
  EXPECT_FALSE(full.again[6]) << "the sum that is the next layer's input is kept";
  Keeping all = keep(forward, ends, UINT64_MAX);
  EXPECT_EQ(all.cost, 0u);
  EXPECT_EQ(all.blocks, 0u);
}

/// Bytes buy what saves most; of equal layers the last keep more.
TEST(Keep, SpendsBytesWhereTheySaveMost) {
  auto forward = layers(12, 1024);
  auto ends = blockEnds(forward);
  uint64_t least = keep(forward, ends, 0).bytes;
  Keeping some = keep(forward, ends, least + 5 * 4 * 1024);
  EXPECT_EQ(some.cost, 7u * 104 + 5u * 4);
  EXPECT_LE(some.bytes, least + 5 * 4 * 1024);
  for (uint32_t l = 0; l < 12; ++l) EXPECT_EQ(some.dropped[6 * l + 3], l < 7) << l;
}

/// What `dropped` costs, worked out anew.
struct Bill {
  uint64_t bytes = 0, cost = 0;
};
Bill billOf(const std::vector<Made> &forward, const std::vector<uint32_t> &ends, const std::vector<bool> &dropped) {
  Bill bill;
  auto blockOf = [&](uint32_t i) { return std::upper_bound(ends.begin(), ends.end(), i) - ends.begin(); };
  for (size_t i = 0; i < forward.size(); ++i)
    if (forward[i].read && !dropped[i]) bill.bytes += forward[i].bytes;
  for (size_t b = 0; b < ends.size(); ++b) {
    std::vector<bool> made(forward.size(), false), loaded(forward.size(), false);
    auto make = [&](auto &&self, uint32_t i) -> void {
      if (made[i]) return;
      made[i] = true;
      bill.cost += forward[i].cost;
      for (uint32_t need : forward[i].needs)
        if (blockOf(need) != blockOf(i)) {
          if (!forward[need].read && !loaded[need]) bill.bytes += forward[need].bytes;
          loaded[need] = true;
        } else if (!forward[need].read || dropped[need]) {
          self(self, need);
        }
    };
    for (uint32_t i = 0; i < forward.size(); ++i)
      if (dropped[i] && blockOf(i) == std::ptrdiff_t(b)) make(make, i);
  }
  return bill;
}

TEST(Keep, IsAsCheapAsTheBestOfAllChoices) {
  std::mt19937 random(7);
  auto upTo = [&](unsigned n) { return unsigned(random() % (n + 1)); };
  size_t held = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<Made> forward;
    std::vector<uint32_t> ends;
    uint32_t pattern = unsigned(random());
    unsigned blocks = 2 + upTo(2);
    for (unsigned b = 0; b <= blocks; ++b) {
      bool same = round % 2; // equal blocks, or each another
      std::mt19937 own(same ? pattern : unsigned(random()));
      uint32_t begin = uint32_t(forward.size());
      for (unsigned i = 0, size = 3 + own() % 3; i < size; ++i) {
        Made made = one(1 + own() % 9, own() % 20, {}, own() % 3, own() % 3 > 0);
        for (uint32_t k = 0; k < i; ++k)
          if (own() % 2) made.needs.push_back(begin + k);
        if (begin && (i == 0 || own() % 3 == 0)) made.needs.push_back(begin - 1);
        if (begin > 2 && own() % 8 == 0) made.needs.push_back(begin - 2);
        forward.push_back(std::move(made));
      }
      ends.push_back(uint32_t(forward.size()));
    }
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < ends[ends.size() - 2]; ++i) {
      uint32_t end = *std::upper_bound(ends.begin(), ends.end(), i);
      bool out = false;
      for (uint32_t j = end; j < forward.size(); ++j) out |= std::count(forward[j].needs.begin(), forward[j].needs.end(), i) > 0;
      if (forward[i].read && !out) open.push_back(i);
    }
    if (open.size() > 11) continue;
    uint64_t most = 0;
    for (const Made &made : forward) most += made.bytes;
    uint64_t bytes = upTo(unsigned(most));
    std::optional<Bill> best, least;
    for (uint32_t subset = 0; subset < 1u << open.size(); ++subset) {
      std::vector<bool> dropped(forward.size(), false);
      for (size_t bit = 0; bit < open.size(); ++bit) dropped[open[bit]] = subset >> bit & 1;
      Bill bill = billOf(forward, ends, dropped);
      if (bill.bytes <= bytes && (!best || bill.cost < best->cost)) best = bill;
      if (!least || std::pair(bill.bytes, bill.cost) < std::pair(least->bytes, least->cost)) least = bill;
    }
    Keeping found = keep(forward, ends, bytes);
    Bill bill = billOf(forward, ends, found.dropped);
    EXPECT_EQ(bill.cost, found.cost);
    EXPECT_LE(found.bytes, bill.bytes); // what several blocks load is there once
    EXPECT_EQ(found.cost, best ? best->cost : least->cost) << "round " << round << ", " << bytes << " bytes";
    EXPECT_TRUE(!best || bill.bytes <= bytes);
    held += bool(best);
  }
  EXPECT_GT(held, 150u);
}

/// A thousand equal layers, and a block too large for all its subsets, take no time to speak of.
TEST(Keep, LongChains) {
  auto forward = layers(1000, 1 << 20);
  auto ends = blockEnds(forward);
  ASSERT_EQ(ends.size(), 1002u);
  Keeping full = keep(forward, ends, 0);
  uint64_t more = full.bytes + (uint64_t(2500) << 20);
  Keeping half = keep(forward, ends, more);
  EXPECT_LE(half.bytes, more);
  EXPECT_LT(half.cost, full.cost);

  std::vector<Made> wide{one(64, 1, {})};
  for (uint32_t i = 0; i < 40; ++i) wide.push_back(one(64, i % 7 + 1, {i}));
  wide.push_back(one(64, 1, {40}));
  std::vector<uint32_t> two{1, 41, 42};
  uint64_t last = UINT64_MAX;
  for (uint64_t bytes = 0; bytes <= 42 * 64; bytes += 64) {
    Keeping keeping = keep(wide, two, bytes);
    EXPECT_LE(keeping.cost, last);
    last = keeping.cost;
    EXPECT_LE(keeping.bytes, std::max<uint64_t>(bytes, 3 * 64));
  }
  EXPECT_EQ(last, 0u);
}

} // namespace
} // namespace zero::fuse

//===- tier_knapsack_test.cpp - which tier model state rests in, against every choice there is ------===//
#include "passes/shard/tier_knapsack.h"
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace zero::shard {
namespace {

using state::Tier;

int64_t bytesIn(const std::vector<Movable> &things, const std::vector<Tier> &tiers, Tier tier) {
  int64_t sum = 0;
  for (size_t i = 0; i < things.size(); ++i)
    if (tiers[i] == tier) sum += things[i].bytes;
  for (size_t i = 0; i < things.size(); ++i) // what is replaced takes no room
    if (tier == Tier::device && things[i].replaces && tiers[i] == tier) {
      EXPECT_EQ(tiers[*things[i].replaces], tier);
      sum -= things[*things[i].replaces].bytes;
    }
  return sum;
}

std::vector<Movable> randomThings(std::mt19937 &random) {
  std::vector<Movable> things(1 + random() % 10);
  for (Movable &thing : things) {
    thing.bytes = 1 + int64_t(random() % 50);
    thing.traffic = thing.bytes * (1 + int64_t(random() % 4));
  }
  // Some are twice as large as the one after them, and replace it.
  for (size_t i = 0; i + 1 < things.size(); i += 2)
    if (random() % 2) things[i].replaces = i + 1, things[i].bytes = 2 * things[i + 1].bytes;
  return things;
}

/// The least traffic of all choices that keep at most `room` bytes on the device.
int64_t bestOf(const std::vector<Movable> &things, int64_t room) {
  int64_t best = INT64_MAX;
  for (unsigned on = 0; on < 1u << things.size(); ++on) {
    std::vector<Tier> tiers;
    bool makesSense = true;
    for (size_t i = 0; i < things.size(); ++i) tiers.push_back(on >> i & 1 ? Tier::device : Tier::disk);
    for (size_t i = 0; i < things.size(); ++i)
      makesSense &= tiers[i] != Tier::device || !things[i].replaces || tiers[*things[i].replaces] == Tier::device;
    if (!makesSense) continue;
    if (bytesIn(things, tiers, Tier::device) <= room) best = std::min(best, trafficOf(things, tiers));
  }
  return best;
}

TEST(Homes, FillsTheDeviceThenTheHost) {
  std::vector<Movable> things{{100, 200}, {100, 300}, {50, 100}, {50, 150}};
  EXPECT_EQ(chooseTiers(things, {200, 100}), (std::vector{Tier::host, Tier::device, Tier::device, Tier::device}));
  EXPECT_EQ(chooseTiers(things, {150, 0}), (std::vector{Tier::disk, Tier::device, Tier::disk, Tier::device}));
  EXPECT_EQ(chooseTiers(things, {0, 0}), std::vector(4, Tier::disk));
  EXPECT_EQ(chooseTiers(things, {INT64_MAX, 0}), std::vector(4, Tier::device));
}

/// Gaps between neighbours have at most three lengths, the largest of three the sum of the others, and at neither end more is left out.
TEST(Homes, SpreadEvenly) {
  for (size_t things : {1, 2, 7, 100})
    for (size_t first = 2; first <= things; ++first) {
      std::vector<size_t> order = spreadOrder(things);
      ASSERT_EQ(std::set(order.begin(), order.end()).size(), things);
      std::set<size_t> chosen(order.begin(), order.begin() + ptrdiff_t(first)), gaps;
      for (auto at = std::next(chosen.begin()); at != chosen.end(); ++at) gaps.insert(*at - *std::prev(at));
      ASSERT_LE(gaps.size(), 3u);
      if (gaps.size() == 3) {
        EXPECT_EQ(*gaps.rbegin(), *gaps.begin() + *std::next(gaps.begin()));
      }
      EXPECT_LE(*chosen.begin(), *gaps.rbegin());
      EXPECT_LT(things - *chosen.rbegin() - 1, *gaps.rbegin());
    }
}

TEST(Homes, TakeWhatComesAlongToTheHost) {
  std::vector<Movable> things{{100, 200, 150}, {100, 200}};
  EXPECT_EQ(chooseTiers(things, {0, 350}), (std::vector{Tier::host, Tier::host}));
  EXPECT_EQ(chooseTiers(things, {0, 349}), (std::vector{Tier::host, Tier::disk}));
  EXPECT_EQ(chooseTiers(things, {0, 249}), (std::vector{Tier::disk, Tier::host}));
  EXPECT_EQ(chooseTiers(things, {200, 0}), (std::vector{Tier::device, Tier::device}));
}

TEST(Homes, OneReplacesAnother) {
  // A master of 40 spares 80 bytes and a copy of 20 that has 60 copied: 140 for 40 are more than 60 for 20.
  std::vector<Movable> master{{40, 80, 0, 1}, {20, 60}, {40, 80}};
  EXPECT_EQ(chooseTiers(master, {40, 0}), (std::vector{Tier::device, Tier::device, Tier::disk}));
  EXPECT_EQ(chooseTiers(master, {39, 0}), (std::vector{Tier::disk, Tier::device, Tier::disk}));
  EXPECT_EQ(chooseTiers(master, {80, 0}), std::vector(3, Tier::device));
  // A copy that is read often comes first; the master that then replaces it takes 20 bytes more.
  std::vector<Movable> often{{40, 80, 0, 1}, {20, 200}, {30, 100}};
  EXPECT_EQ(chooseTiers(often, {30, 0}), (std::vector{Tier::disk, Tier::device, Tier::disk}));
  EXPECT_EQ(chooseTiers(often, {40, 0}), (std::vector{Tier::device, Tier::device, Tier::disk}));
  EXPECT_EQ(chooseTiers(often, {70, 0}), std::vector(3, Tier::device));
  // What it replaces gives its room on the host back.
  EXPECT_EQ(chooseTiers({{40, 80, 0, 1}, {50, 200, 5}, {30, 30}}, {40, 55}), (std::vector{Tier::device, Tier::device, Tier::host}));
}

TEST(Homes, WhatLeavesIsCopiedAtLeast) {
  std::vector<Movable> things{{100, 200}, {100, 300}, {50, 100}, {30, 0}};
  EXPECT_EQ(leastTraffic(removalsOf(things), 0), 0);
  EXPECT_EQ(leastTraffic(removalsOf(things), 30), 0);
  EXPECT_EQ(leastTraffic(removalsOf(things), 40), 20);
  EXPECT_EQ(leastTraffic(removalsOf(things), 200), 300 + 60);
  EXPECT_EQ(leastTraffic(removalsOf(things), 1000), 600); // more than there is
  EXPECT_EQ(removalsOf(things).size(), 3u);               // two of a kind are one
  // A master leaves with its copy, 140 for 40 bytes, since that alone takes 80 for 20.
  EXPECT_EQ(leastTraffic(removalsOf({{40, 80, 0, 1}, {20, 60}}), 20), 70);
  // A copy that is read often stays: 80 for 20, and 200 for the other 20.
  EXPECT_EQ(leastTraffic(removalsOf({{40, 80, 0, 1}, {20, 200}}), 30), 80 + 100);
}

TEST(Homes, AreNearTheBestChoice) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<Movable> things = randomThings(random);
    int64_t all = 0, largest = 0;
    for (const Movable &thing : things) {
      int64_t both = thing.traffic + (thing.replaces ? things[*thing.replaces].traffic : 0);
      all += thing.bytes, largest = std::max(largest, both);
    }
    Room room{int64_t(random() % uint64_t(all + 1)), int64_t(random() % 100)};
    std::vector<Tier> tiers = chooseTiers(things, room);
    EXPECT_LE(bytesIn(things, tiers, Tier::device), room.device);
    EXPECT_LE(bytesIn(things, tiers, Tier::host), room.host);
    int64_t best = bestOf(things, room.device), whole = bytesIn(things, std::vector(things.size(), Tier::device), Tier::device);
    EXPECT_LE(trafficOf(things, tiers), best + largest);
    EXPECT_LE(leastTraffic(removalsOf(things), whole - room.device), best);
  }
}

} // namespace
} // namespace zero::shard

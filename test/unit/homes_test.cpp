//===- homes_test.cpp - which tier model state rests in, against every choice there is ---------------===//
#include "passes/shard/homes.h"
#include <gtest/gtest.h>
#include <random>

namespace zero::shard {
namespace {

using state::Tier;

int64_t bytesIn(const std::vector<Movable> &things, const std::vector<Tier> &homes, Tier tier) {
  int64_t sum = 0;
  for (size_t i = 0; i < things.size(); ++i)
    if (homes[i] == tier) sum += things[i].bytes;
  return sum;
}

std::vector<Movable> randomThings(std::mt19937 &random) {
  std::vector<Movable> things(1 + random() % 10);
  for (Movable &thing : things) {
    thing.bytes = 1 + int64_t(random() % 50);
    thing.traffic = thing.bytes * (1 + int64_t(random() % 4));
  }
  return things;
}

/// The least traffic of all choices that keep at most `room` bytes on the device.
int64_t bestOf(const std::vector<Movable> &things, int64_t room) {
  int64_t best = INT64_MAX;
  for (unsigned on = 0; on < 1u << things.size(); ++on) {
    std::vector<Tier> homes;
    for (size_t i = 0; i < things.size(); ++i) homes.push_back(on >> i & 1 ? Tier::device : Tier::disk);
    if (bytesIn(things, homes, Tier::device) <= room) best = std::min(best, trafficOf(things, homes));
  }
  return best;
}

TEST(Homes, FillsTheDeviceThenTheHost) {
  std::vector<Movable> things{{100, 200}, {100, 300}, {50, 100}, {50, 150}};
  EXPECT_EQ(chooseHomes(things, {200, 100}), (std::vector{Tier::host, Tier::device, Tier::device, Tier::device}));
  EXPECT_EQ(chooseHomes(things, {150, 0}), (std::vector{Tier::disk, Tier::device, Tier::disk, Tier::device}));
  EXPECT_EQ(chooseHomes(things, {0, 0}), std::vector(4, Tier::disk));
  EXPECT_EQ(chooseHomes(things, {INT64_MAX, 0}), std::vector(4, Tier::device));
}

TEST(Homes, TakeWhatComesAlongToTheHost) {
  std::vector<Movable> things{{100, 200, 150}, {100, 200}};
  EXPECT_EQ(chooseHomes(things, {0, 350}), (std::vector{Tier::host, Tier::host}));
  EXPECT_EQ(chooseHomes(things, {0, 349}), (std::vector{Tier::host, Tier::disk}));
  EXPECT_EQ(chooseHomes(things, {0, 249}), (std::vector{Tier::disk, Tier::host}));
  EXPECT_EQ(chooseHomes(things, {200, 0}), (std::vector{Tier::device, Tier::device}));
}

TEST(Homes, AreNearTheBestChoice) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<Movable> things = randomThings(random);
    int64_t all = 0, largest = 0;
    for (const Movable &thing : things) all += thing.bytes, largest = std::max(largest, thing.traffic);
    Room room{int64_t(random() % uint64_t(all + 1)), int64_t(random() % 100)};
    std::vector<Tier> homes = chooseHomes(things, room);
    EXPECT_LE(bytesIn(things, homes, Tier::device), room.device);
    EXPECT_LE(bytesIn(things, homes, Tier::host), room.host);
    EXPECT_LE(trafficOf(things, homes), bestOf(things, room.device) + largest);
  }
}

} // namespace
} // namespace zero::shard

//===- tier_knapsack.cpp - which tier model state rests in -----------------------------------------===//
#include "passes/shard/tier_knapsack.h"
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace zero::shard {

namespace {

/// What room for it spares, for each byte.
double worthOf(const std::vector<Movable> &things, const Movable &thing) {
  auto worth = [](int64_t traffic, int64_t bytes) { return double(traffic) / double(std::max<int64_t>(bytes, 1)); };
  if (!thing.replaces) return worth(thing.traffic, thing.bytes);
  const Movable &other = things[*thing.replaces];
  double more = worth(thing.traffic, thing.bytes - other.bytes);
  return worth(other.traffic, other.bytes) >= more ? more : worth(thing.traffic + other.traffic, thing.bytes);
}

} // namespace

std::vector<state::Tier> chooseTiers(const std::vector<Movable> &things, Room room) {
  std::vector<size_t> order(things.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::vector<double> worth;
  for (const Movable &thing : things) worth.push_back(worthOf(things, thing));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return worth[a] > worth[b]; });
  std::vector<state::Tier> tiers(things.size(), state::Tier::disk);
  std::vector<bool> replaced(things.size());
  for (size_t i : order) {
    if (replaced[i]) continue;
    const Movable &thing = things[i];
    Room before; // what the thing that it replaces has taken
    if (thing.replaces && tiers[*thing.replaces] == state::Tier::device) before.device = things[*thing.replaces].bytes;
    if (thing.replaces && tiers[*thing.replaces] == state::Tier::host)
      before.host = things[*thing.replaces].bytes + things[*thing.replaces].beside;
    if (thing.bytes <= room.device + before.device) {
      tiers[i] = state::Tier::device;
      room.device -= thing.bytes - before.device;
      room.host += before.host;
      if (thing.replaces) replaced[*thing.replaces] = true, tiers[*thing.replaces] = state::Tier::device;
    } else if (int64_t all = thing.bytes + thing.beside; all <= room.host) {
      tiers[i] = state::Tier::host;
      room.host -= all;
    }
  }
  return tiers;
}

std::vector<size_t> spreadOrder(size_t things) {
  std::vector<double> positions;
  for (size_t i = 0; i < things; ++i) positions.push_back(std::fmod(double(i) * std::numbers::phi, 1.0));
  std::vector<size_t> order(things);
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::stable_sort(order, {}, [&](size_t i) { return positions[i]; });
  return order;
}

int64_t trafficOf(const std::vector<Movable> &things, const std::vector<state::Tier> &tiers) {
  int64_t sum = 0;
  for (size_t i = 0; i < things.size(); ++i)
    if (tiers[i] != state::Tier::device) sum += things[i].traffic;
  return sum;
}

static double perByte(const Removal &removal) { return double(removal.traffic) / double(std::max<int64_t>(removal.bytes, 1)); }

std::vector<Removal> removalsOf(const std::vector<Movable> &things) {
  std::vector<Removal> all;
  std::vector<bool> joined(things.size());
  for (const Movable &thing : things) {
    if (!thing.replaces) continue;
    const Movable &other = things[*thing.replaces];
    Removal alone{thing.bytes - other.bytes, thing.traffic}; // the other comes in its place
    bool apart = perByte(alone) <= perByte({other.bytes, other.traffic});
    all.push_back(apart ? alone : Removal{thing.bytes, thing.traffic + other.traffic});
    joined[*thing.replaces] = !apart;
  }
  for (size_t i = 0; i < things.size(); ++i)
    if (!things[i].replaces && !joined[i]) all.push_back({things[i].bytes, things[i].traffic});
  std::ranges::sort(all, {}, perByte);
  std::vector<Removal> merged;
  for (const Removal &removal : all)
    if (!merged.empty() && std::abs(perByte(merged.back()) - perByte(removal)) < 1e-3)
      merged.back().bytes += removal.bytes, merged.back().traffic += removal.traffic;
    else
      merged.push_back(removal);
  return merged;
}

int64_t leastTraffic(std::vector<Removal> removals, int64_t bytes) {
  std::ranges::sort(removals, {}, perByte);
  double sum = 0;
  for (const Removal &removal : removals) {
    int64_t part = std::clamp<int64_t>(bytes, 0, removal.bytes);
    sum += perByte(removal) * double(part);
    bytes -= part;
  }
  return int64_t(sum);
}

} // namespace zero::shard

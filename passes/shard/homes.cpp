//===- homes.cpp - which tier model state rests in --------------------------------------------------===//
#include "passes/shard/homes.h"
#include <algorithm>
#include <numeric>

namespace zero::shard {

namespace {
double perByte(const Movable &thing) { return double(thing.traffic) / double(thing.bytes); }
} // namespace

std::vector<state::Tier> chooseHomes(const std::vector<Movable> &things, Room room) {
  std::vector<size_t> order(things.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return perByte(things[a]) > perByte(things[b]); });
  std::vector<state::Tier> homes(things.size(), state::Tier::disk);
  for (size_t i : order)
    if (int64_t bytes = things[i].bytes; bytes <= room.device) {
      homes[i] = state::Tier::device;
      room.device -= bytes;
    } else if (int64_t all = bytes + things[i].beside; all <= room.host) {
      homes[i] = state::Tier::host;
      room.host -= all;
    }
  return homes;
}

int64_t trafficOf(const std::vector<Movable> &things, const std::vector<state::Tier> &homes) {
  int64_t sum = 0;
  for (size_t i = 0; i < things.size(); ++i)
    if (homes[i] != state::Tier::device) sum += things[i].traffic;
  return sum;
}

} // namespace zero::shard

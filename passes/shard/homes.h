//===- homes.h - which tier model state rests in: problem and solver --------------------------------===//
// Plain data. Device memory is filled first with what would be copied most often if it rested elsewhere, then host memory; the disk takes
// the rest.
#pragma once
#include "compiler/zero/Zero.h"
#include <cstdint>
#include <vector>

namespace zero::shard {

/// Something that may rest in any tier.
struct Movable {
  int64_t bytes = 0;
  int64_t traffic = 0; // bytes copied in one optimizer step if it does not rest on the device
  int64_t beside = 0;  // bytes that the host holds for its sake beside it, if it rests there
};

/// Bytes that may rest in a tier; the disk has room for everything.
struct Room {
  int64_t device = 0, host = 0;
};

/// The tier of each. By traffic per byte, the highest first and those that are equal in their order, each takes the first tier with room
/// for it. What is copied in a step is at most that of the best choice and one thing more (Dantzig 1957: greedy for the knapsack), and
/// things are small beside the room.
std::vector<state::Tier> chooseHomes(const std::vector<Movable> &things, Room room);

/// Bytes copied in a step.
int64_t trafficOf(const std::vector<Movable> &things, const std::vector<state::Tier> &homes);

} // namespace zero::shard

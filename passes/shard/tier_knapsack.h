//===- tier_knapsack.h - which tier model state rests in: problem and solver -----------------------===//
// Plain data. Device memory is filled first with what would be copied most often if it rested elsewhere, then host memory; the disk takes
// the rest.
#pragma once
#include "compiler/zero/Zero.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace zero::shard {

/// Something that may rest in any tier.
struct Movable {
  int64_t bytes = 0;
  int64_t traffic = 0;              // bytes copied in one optimizer step if it does not rest on the device
  int64_t beside = 0;               // bytes that the host holds for its sake beside it, if it rests there
  std::optional<size_t> replaces{}; // a smaller thing that nobody needs, anywhere, where this one rests on the device
};

/// Bytes that may rest in a tier; the disk has room for everything.
struct Room {
  int64_t device = 0, host = 0;
};

/// The tier of each; of what is replaced the device. By traffic per byte, the highest first and those that are equal in their order, each
/// takes the first tier with room for it. What is copied in a step is at most that of the best choice and one thing more (Dantzig 1957:
/// greedy for the knapsack), and things are small beside the room. One that replaces another counts for what it adds to that, or for both
/// where both together spare more for each byte than the other alone (Sinha and Zoltners 1979: choices of which one is made).
std::vector<state::Tier> chooseTiers(const std::vector<Movable> &things, Room room);

/// An order of so many things of equal worth, of which any number of the first lie evenly among all: by the fraction of i times the golden
/// section. Those with a fraction below any bound have gaps of at most three lengths between them (the three gap theorem, Slater 1950).
std::vector<size_t> spreadOrder(size_t things);

/// Bytes copied in a step.
int64_t trafficOf(const std::vector<Movable> &things, const std::vector<state::Tier> &tiers);

/// Bytes that may leave the device, and what is copied in a step if all of them do.
struct Removal {
  int64_t bytes = 0, traffic = 0;
};

/// How things that rest on the device leave it, those that are copied least for each byte first; those of equal worth are one.
std::vector<Removal> removalsOf(const std::vector<Movable> &things);

/// Copied in a step at least if so many bytes leave: no choice copies less (the linear relaxation of the knapsack, Dantzig 1957). All that
/// may leave is copied if that is not enough.
int64_t leastTraffic(std::vector<Removal> removals, int64_t bytes);

} // namespace zero::shard

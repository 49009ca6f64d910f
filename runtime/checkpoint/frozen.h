// Frozen parameters are always what the model's file, or their rule, says. Checkpoints do not hold them (those of a few adapters beside a
// large model are small), but sums that tell whether a run goes on beside the same values.
#pragma once
#include "runtime/comm/communicator.h"
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace zero::runtime {

// Of elements of one parameter, from `start` on: the sum, modulo 2^64, of products of an element's bits and a number that its index makes.
// That of a whole is the sum of its parts' sums, however ranks share it.
uint64_t frozenSum(uint64_t start, std::span<const float> values);

// By parameter, of all that are frozen.
struct FrozenSums {
  std::map<std::string, uint64_t> owned; // of what this rank owns
  std::map<std::string, uint64_t> whole; // over all ranks
};

// Collective: makes the sums over all ranks.
void shareSums(Communicator &communicator, FrozenSums &sums);

} // namespace zero::runtime

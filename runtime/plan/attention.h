// Which keys a query sees, of a plan's attention: see plan.Attention.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>

namespace zero::plan {

// Query i sees keys i + first to i + last, of those there are.
struct SeenKeys {
  int64_t first, last;
};
SeenKeys seenKeys(const Attention &attention);

// Pairs of a query and a key it sees, of one head.
uint64_t seenPairs(const Attention &attention);

} // namespace zero::plan

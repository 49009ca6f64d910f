#include "runtime/plan/attention.h"
#include <algorithm>

namespace zero::plan {

SeenKeys seenKeys(const Attention &attention) {
  auto queries = static_cast<int64_t>(attention.q_len()), keys = static_cast<int64_t>(attention.kv_len());
  SeenKeys seen{1 - queries, attention.causal() ? keys - queries : keys - 1};
  if (attention.has_band()) {
    seen.first = std::max(seen.first, attention.band().first());
    seen.last = std::min(seen.last, attention.band().last());
  }
  return seen;
}

namespace {

// Pairs of which the key is up to `last` after its query.
uint64_t pairsUpTo(int64_t last, int64_t queries, int64_t keys) {
  // Queries before `none` see no key, those from `all` on see all of them, and each in between one more than the one before.
  int64_t none = std::clamp(-last, int64_t(0), queries), all = std::clamp(keys - 1 - last, none, queries);
  auto rising = static_cast<uint64_t>(all - none), first = static_cast<uint64_t>(none + last + 1);
  return rising * first + rising * (rising - 1) / 2 * (rising > 0) + static_cast<uint64_t>(queries - all) * static_cast<uint64_t>(keys);
}

} // namespace

uint64_t seenPairs(const Attention &attention) {
  auto queries = static_cast<int64_t>(attention.q_len()), keys = static_cast<int64_t>(attention.kv_len());
  auto [first, last] = seenKeys(attention);
  if (first > last) return 0;
  return pairsUpTo(last, queries, keys) - pairsUpTo(first - 1, queries, keys);
}

} // namespace zero::plan

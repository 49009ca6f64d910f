//===- placed.cpp - an index of buffers that have their bytes -------------------------------------------===//
#include "passes/place/placed.h"

namespace zero::place {
namespace {

/// Without branches, so that it becomes vector code: a search for offsets spends most of its time here.
[[gnu::always_inline]] inline LiveRanges::Flags flagsOf(const LiveRanges &ranges, int32_t from, int32_t to, int32_t nextTo) {
  LiveRanges::Flags live;
  for (size_t i = 0; i < LiveRanges::kRoom; ++i)
    live[i] = ((ranges.first[i] <= to) & (from <= ranges.last[i])) | ((ranges.first[i] <= nextTo) & !ranges.next[i]);
  return live;
}

#if defined(__x86_64__)
[[gnu::target("avx512bw,avx512vl")]] LiveRanges::Flags withAvx512(const LiveRanges &ranges, int32_t from, int32_t to, int32_t nextTo) {
  return flagsOf(ranges, from, to, nextTo);
}
[[gnu::target("avx2")]] LiveRanges::Flags withAvx2(const LiveRanges &ranges, int32_t from, int32_t to, int32_t nextTo) {
  return flagsOf(ranges, from, to, nextTo);
}
const bool hasAvx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
const bool hasAvx2 = __builtin_cpu_supports("avx2");
#endif

} // namespace

LiveRanges::Flags LiveRanges::liveIn(int32_t from, int32_t to, int32_t nextTo) const {
#if defined(__x86_64__)
  if (hasAvx512) return withAvx512(*this, from, to, nextTo);
  if (hasAvx2) return withAvx2(*this, from, to, nextTo);
#endif
  return flagsOf(*this, from, to, nextTo);
}

} // namespace zero::place

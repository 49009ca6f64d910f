//===- history.h - who touched which bytes of an arena last ------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace zero::judge {

inline constexpr uint32_t kLaneCount = plan::Lane_ARRAYSIZE;
inline constexpr uint32_t kNobody = ~0u;

/// Bytes with one past.
struct Interval {
  uint64_t end = 0;
  uint32_t writer = kNobody;                // step
  uint32_t buffer = kNobody;                // it wrote through this buffer
  std::array<uint32_t, kLaneCount> readers; // since then, the latest of each lane
  Interval() { readers.fill(kNobody); }
};

/// One arena; its intervals never overlap.
class History {
public:
  /// Calls `each` with the past of all bytes in [begin, end), piece by piece; bytes nobody touched have the past of a new Interval.
  template <typename Visit> void visit(uint64_t begin, uint64_t end, Visit &&each) {
    static const Interval untouched;
    split(begin);
    split(end);
    uint64_t at = begin;
    for (auto it = intervals.lower_bound(begin); at < end;) {
      if (it == intervals.end() || it->first > at) {
        each(untouched);
        at = it == intervals.end() ? end : std::min(end, it->first);
      } else {
        each(it->second);
        at = it->second.end;
        ++it;
      }
    }
  }
  void write(uint64_t begin, uint64_t end, uint32_t step, uint32_t buffer);
  void read(uint64_t begin, uint64_t end, uint32_t step, uint32_t lane);

private:
  void split(uint64_t at);
  std::map<uint64_t, Interval> intervals; // by their first byte
};

} // namespace zero::judge

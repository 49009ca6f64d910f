//===- history.cpp ------------------------------------------------------------------------------------===//
#include "runtime/judge/history.h"

namespace zero::judge {

void History::write(uint64_t begin, uint64_t end, uint32_t step, uint32_t buffer) {
  if (begin == end) return;
  split(begin);
  split(end);
  intervals.erase(intervals.lower_bound(begin), intervals.lower_bound(end));
  Interval &written = intervals[begin];
  written.end = end;
  written.writer = step;
  written.buffer = buffer;
}

void History::read(uint64_t begin, uint64_t end, uint32_t step, uint32_t lane) {
  if (begin == end) return;
  split(begin);
  split(end);
  uint64_t at = begin;
  for (auto it = intervals.lower_bound(begin); at < end; ++it) {
    if (it == intervals.end() || it->first > at) { // bytes nobody has touched yet
      uint64_t stop = it == intervals.end() ? end : std::min(end, it->first);
      it = intervals.emplace_hint(it, at, Interval());
      it->second.end = stop;
    }
    it->second.readers[lane] = step;
    at = it->second.end;
  }
}

void History::split(uint64_t at) {
  auto it = intervals.upper_bound(at);
  if (it == intervals.begin()) return;
  --it;
  if (it->first >= at || it->second.end <= at) return;
  Interval tail = it->second;
  it->second.end = at;
  intervals.emplace(at, tail);
}

} // namespace zero::judge

//===- history.cpp ------------------------------------------------------------------------------------===//
#include "runtime/judge/history.h"

namespace zero::judge {

void History::write(uint64_t begin, uint64_t end, uint32_t step, uint32_t buffer) {
  if (begin == end) return;
  split(begin);
  split(end);
  stretches.erase(stretches.lower_bound(begin), stretches.lower_bound(end));
  Stretch &written = stretches[begin];
  written.end = end;
  written.writer = step;
  written.buffer = buffer;
}

void History::read(uint64_t begin, uint64_t end, uint32_t step, uint32_t lane) {
  if (begin == end) return;
  split(begin);
  split(end);
  uint64_t at = begin;
  for (auto it = stretches.lower_bound(begin); at < end; ++it) {
    if (it == stretches.end() || it->first > at) { // bytes nobody has touched yet
      uint64_t stop = it == stretches.end() ? end : std::min(end, it->first);
      it = stretches.emplace_hint(it, at, Stretch());
      it->second.end = stop;
    }
    it->second.readers[lane] = step;
    at = it->second.end;
  }
}

void History::split(uint64_t at) {
  auto it = stretches.upper_bound(at);
  if (it == stretches.begin()) return;
  --it;
  if (it->first >= at || it->second.end <= at) return;
  Stretch tail = it->second;
  it->second.end = at;
  stretches.emplace(at, tail);
}

} // namespace zero::judge

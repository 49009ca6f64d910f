// Work that is cut into parts for threads of its own.
#pragma once
#include "runtime/process/start_thread.h"
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace zero {

// Calls body(begin, end) for parts of [0, size), none of fewer than `least` unless that is all, on `threads` threads at most, of which the
// calling one is the last. Returns when all are done. The body does not throw. `what` names such a thread where none can be started.
template <typename Body> void inParts(uint64_t size, uint64_t least, int threads, const char *what, const Body &body) {
  uint64_t parts = std::clamp<uint64_t>(size / least, 1, static_cast<uint64_t>(std::max(threads, 1)));
  std::vector<std::jthread> workers;
  for (uint64_t p = 0; p + 1 < parts; ++p)
    workers.push_back(
        startThread<std::jthread>(what, [&body, begin = size * p / parts, end = size * (p + 1) / parts] { body(begin, end); }));
  body(size * (parts - 1) / parts, size);
}

} // namespace zero

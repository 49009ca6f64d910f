// Numbers that nobody can tell beforehand, from the system. std::random_device would ask for a newer C library than those of most GPUs'
// machines (arc4random, glibc 2.36).
#pragma once
#include "runtime/base/error.h"
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/random.h>

namespace zero::runtime {

inline uint64_t randomBits() {
  uint64_t bits = 0;
  while (::getrandom(&bits, sizeof bits, 0) != sizeof bits)
    if (errno != EINTR) throw Error(std::string("the system gives no random numbers: ") + std::strerror(errno));
  return bits;
}

} // namespace zero::runtime

#include "runtime/process/addresses.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/process/stacks.h"
#include "runtime/process/value_of.h"
#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <malloc.h>
#include <new>
#include <sys/resource.h>

namespace zero::runtime {
AvailableAddresses availableAddresses() {
  struct Limit {
    decltype(RLIMIT_AS) resource;
    const char *flag, *used;
  };
  AvailableAddresses least{UINT64_MAX, nullptr, UINT64_MAX};
  for (const Limit &limit : {Limit{RLIMIT_AS, "-v", "VmSize:"}, Limit{RLIMIT_DATA, "-d", "VmData:"}}) {
    rlimit room{};
    if (::getrlimit(limit.resource, &room) != 0 || room.rlim_cur == RLIM_INFINITY) continue;
    uint64_t used = valueOf("/proc/self/status", limit.used) * 1024, left = room.rlim_cur - std::min<uint64_t>(room.rlim_cur, used);
    if (left < least.bytes) least = {left, limit.flag, room.rlim_cur};
  }
  return least;
}

void spareAddresses() {
  if (!availableAddresses().flag) return;
  setThreadStacks(kThreadStackBytes);
  ::mallopt(M_ARENA_MAX, 1);
}

void requireAddresses(const std::string &what, uint64_t bytes) {
  AvailableAddresses left = availableAddresses();
  if (left.flag && left.bytes < bytes)
    throw Error(fmt::format("{} maps up to {}, but the limit on memory that is mapped (ulimit {}) leaves {}; raise that limit", what,
                            inMiB(bytes), left.flag, inMiB(left.bytes)));
}

std::string sentenceOf(const std::exception &error) {
  if (!dynamic_cast<const std::bad_alloc *>(&error)) return error.what();
  std::string sentence = "this process cannot get the memory it needs";
  try {
    if (AvailableAddresses left = availableAddresses(); left.flag)
      sentence += fmt::format(": the limit on what it may map (ulimit {}) is {}; raise it, give a smaller --threads, or compile with "
                              "a smaller --device-memory",
                              left.flag, inMiB(left.limit));
  } catch (const std::bad_alloc &) { // so little is left
  }
  return sentence;
}

} // namespace zero::runtime

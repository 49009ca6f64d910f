#include "runtime/process/stacks.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

namespace zero::runtime {

void setThreadStacks(size_t bytes) {
  pthread_attr_t usual;
  if (::pthread_getattr_default_np(&usual) != 0) return; // they are as the system has them
  if (::pthread_attr_setstacksize(&usual, bytes) == 0) ::pthread_setattr_default_np(&usual);
  ::pthread_attr_destroy(&usual);
}

void raiseStacks() {
  constexpr rlim_t kUsual = rlim_t(8) << 20, kLeast = rlim_t(256) << 10;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kUsual) return;
  if (limit.rlim_cur < kThreadStackBytes) setThreadStacks(kThreadStackBytes);
  limit.rlim_cur = std::min(limit.rlim_max, kUsual);
  ::setrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur < kLeast)
    throw Error(fmt::format("the limit on its stack (ulimit -s) leaves this process {} KiB, and it needs {}; raise that limit",
                            limit.rlim_cur >> 10, kLeast >> 10));
}

} // namespace zero::runtime

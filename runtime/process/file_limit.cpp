#include "runtime/process/file_limit.h"
#include <sys/resource.h>

namespace zero::runtime {

void raiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit); // if not, the file that is one too many says so
}

} // namespace zero::runtime

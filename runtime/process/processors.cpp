//===- processors.cpp - how many processors this process may use ---------------------------------------===//
#include "runtime/process/processors.h"
#include "runtime/process/control_groups.h"
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sched.h>
#include <thread>

namespace zero::runtime {
namespace {

struct Share {
  int64_t quota = 0, period = 0; // microseconds; no quota, or a negative one: any
};

Share shareOf(const ControlGroup &group, const std::string &root) {
  Share share;
  std::string folder = root + group.folder;
  if (group.second) {
    std::ifstream(folder + "/cpu.max") >> share.quota >> share.period; // "max" is no number
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> share.quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> share.period;
  }
  return share;
}

} // namespace

unsigned boundProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? unsigned(CPU_COUNT(&set)) : std::thread::hardware_concurrency();
}

unsigned processors(const std::string &root) {
  unsigned most = boundProcessors();
  for (const ControlGroup &group : controlGroups("cpu", root))
    if (Share share = shareOf(group, root); share.quota > 0 && share.period > 0)
      most = unsigned(std::min<int64_t>(most, share.quota / share.period + (share.quota % share.period != 0)));
  return std::max(most, 1u);
}

} // namespace zero::runtime

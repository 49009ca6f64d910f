#include "runtime/device/cpu/available_memory.h"
#include "runtime/process/control_groups.h"
#include "runtime/process/value_of.h"
#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace zero::runtime {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> numberIn(const std::string &path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt; // absent, or "max"
}

// What the two versions call the same things.
struct Version {
  const char *limit, *usage, *inactive, *active, *slab;
};
// Version 1 says with "total_" what groups below have; it knows no slab that can be reclaimed.
constexpr Version kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file", ""};
constexpr Version kSecond{"memory.max", "memory.current", "inactive_file", "active_file", "slab_reclaimable"};

// What the limit of one group leaves.
uint64_t leftIn(const Version &version, const std::string &folder) {
  std::optional<uint64_t> limit = numberIn(folder + "/" + version.limit), used = numberIn(folder + "/" + version.usage);
  if (!limit || !used) return kUnlimited;
  std::string stat = folder + "/memory.stat";
  uint64_t reclaimable = valueOf(stat, version.inactive) + valueOf(stat, version.active) + valueOf(stat, version.slab);
  uint64_t held = *used - std::min(*used, reclaimable);
  return *limit - std::min(*limit, held);
}

} // namespace

std::string AvailableMemory::sharers() const {
  return ranks == 1 ? "" : " for the " + std::to_string(ranks) + " ranks of this " + (group.empty() ? "machine" : "container or machine");
}

AvailableMemory availableMemory(const Neighbours &neighbours, const std::string &root) {
  uint64_t machine = valueOf(root + "/proc/meminfo", "MemAvailable:");
  AvailableMemory least{machine ? machine * 1024 : kUnlimited, "", neighbours.all};
  for (const ControlGroup &group : controlGroups("memory", root)) {
    AvailableMemory left{leftIn(group.second ? kSecond : kFirst, root + group.folder), group.folder, neighbours.container};
    if (left.ofEach() < least.ofEach()) least = left;
  }
  return least;
}

uint64_t heldMemory(const std::string &root) {
  constexpr uint64_t kSystem = uint64_t(4) << 20; // of open files, threads, sockets and the like; nobody says how much is ours
  uint64_t held = 0;
  for (const char *key : {"RssAnon:", "RssShmem:", "VmPTE:"}) held += valueOf(root + "/proc/self/status", key) * 1024;
  return held > 0 ? held + kSystem : 0;
}

} // namespace zero::runtime

#include "runtime/device/cpu/available_memory.h"
#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

namespace zero::runtime {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The value of `key` in lines of `key value`, as in meminfo and memory.stat; 0 if it is not there.
uint64_t valueOf(const std::string &path, const std::string &key) {
  std::ifstream file(path);
  std::string name, rest;
  for (uint64_t value; file >> name >> value; std::getline(file, rest))
    if (name == key) return value;
  return 0;
}

std::optional<uint64_t> numberIn(const std::string &path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt; // absent, or "max"
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// What the two versions call the same things.
struct Version {
  const char *limit, *usage, *inactive, *active, *slab;
};
// Version 1 says with "total_" what groups below have; it knows no slab that can be reclaimed.
constexpr Version kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file", ""};
constexpr Version kSecond{"memory.max", "memory.current", "inactive_file", "active_file", "slab_reclaimable"};

// A mounted hierarchy of control groups that limits memory.
struct Hierarchy {
  Version version;
  std::string root;  // the group that is seen at...
  std::string mount; // ...this folder
};

// Lines of mountinfo: id parent device root mount options [more…] - type source super-options. Blanks in names are \040.
std::vector<Hierarchy> hierarchies(const std::string &root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields = split(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    std::vector<std::string> controllers = split(dash[3], ',');
    if (dash[1] == "cgroup2")
      found.push_back({kSecond, fields[3], fields[4]});
    else if (dash[1] == "cgroup" && std::find(controllers.begin(), controllers.end(), "memory") != controllers.end())
      found.push_back({kFirst, fields[3], fields[4]});
  }
  return found;
}

// Lines of cgroup: id:controllers:path. Version 2 is id 0 with no controllers.
std::string groupIn(const std::string &root, bool second) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t one = line.find(':'), two = one == std::string::npos ? one : line.find(':', one + 1);
    if (two == std::string::npos) continue;
    std::vector<std::string> controllers = split(line.substr(one + 1, two - one - 1), ',');
    if (second ? controllers.empty() : std::find(controllers.begin(), controllers.end(), "memory") != controllers.end())
      return line.substr(two + 1);
  }
  return "/";
}

// The group's path below the mount: "" for the group that is mounted, which is also what a container sees of one outside it.
std::string below(const std::string &mounted, const std::string &group) {
  std::string prefix = mounted == "/" ? "" : mounted;
  if (group.find("/..") != std::string::npos || !group.starts_with(prefix + "/")) return "";
  return group == "/" ? "" : group.substr(prefix.size());
}

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

AvailableMemory availableMemory(const std::string &root) {
  uint64_t machine = valueOf(root + "/proc/meminfo", "MemAvailable:");
  AvailableMemory least{machine ? machine * 1024 : kUnlimited, ""};
  for (const Hierarchy &hierarchy : hierarchies(root)) {
    std::string group = below(hierarchy.root, groupIn(root, hierarchy.version.limit == kSecond.limit));
    // Every group on the way up has a limit of its own, and the narrowest may be any of them.
    for (;; group = group.substr(0, group.rfind('/'))) {
      uint64_t left = leftIn(hierarchy.version, root + hierarchy.mount + group);
      if (left < least.bytes) least = {left, hierarchy.mount + group};
      if (group.empty()) break;
    }
  }
  return least;
}

} // namespace zero::runtime

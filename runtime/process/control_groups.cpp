//===- control_groups.cpp - the groups of processes that this one is limited by ------------------------===//
#include "runtime/process/control_groups.h"
#include <algorithm>
#include <fstream>
#include <sstream>

namespace zero::runtime {
namespace {

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool contains(const std::vector<std::string> &all, const std::string &one) { return std::find(all.begin(), all.end(), one) != all.end(); }

// A mounted hierarchy of control groups.
struct Hierarchy {
  bool second;
  std::string root;  // the group that is seen at...
  std::string mount; // ...this folder
};

// Lines of mountinfo: id parent device root mount options [more…] - type source super-options. Blanks in names are \040.
std::vector<Hierarchy> hierarchies(const std::string &controller, const std::string &root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields = split(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    bool second = dash[1] == "cgroup2";
    if (second || (dash[1] == "cgroup" && contains(split(dash[3], ','), controller))) found.push_back({second, fields[3], fields[4]});
  }
  return found;
}

// Lines of cgroup: id:controllers:path. Version 2 is id 0 with no controllers.
std::string groupIn(const std::string &controller, const std::string &root, bool second) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t one = line.find(':'), two = one == std::string::npos ? one : line.find(':', one + 1);
    if (two == std::string::npos) continue;
    std::vector<std::string> controllers = split(line.substr(one + 1, two - one - 1), ',');
    if (second ? controllers.empty() : contains(controllers, controller)) return line.substr(two + 1);
  }
  return "/";
}

// The group's path below the mount: "" for the group that is mounted, which is also what a container sees of one outside it.
std::string below(const std::string &mounted, const std::string &group) {
  std::string prefix = mounted == "/" ? "" : mounted;
  if (group.find("/..") != std::string::npos || !group.starts_with(prefix + "/")) return "";
  return group == "/" ? "" : group.substr(prefix.size());
}

} // namespace

std::vector<ControlGroup> controlGroups(const std::string &controller, const std::string &root) {
  std::vector<ControlGroup> groups;
  for (const Hierarchy &hierarchy : hierarchies(controller, root)) {
    std::string group = below(hierarchy.root, groupIn(controller, root, hierarchy.second));
    for (;; group = group.substr(0, group.rfind('/'))) {
      groups.push_back({hierarchy.second, hierarchy.mount + group});
      if (group.empty()) break;
    }
  }
  return groups;
}

} // namespace zero::runtime

//===- control_groups.h - the groups of processes that this one is limited by --------------------------===//
#pragma once
#include <string>
#include <vector>

namespace zero::runtime {

struct ControlGroup {
  bool second;        // version 2 of control groups, or version 1
  std::string folder; // as the system names it, below `root`
};

/// The groups of this process in every mounted hierarchy that knows `controller` ("memory", "cpu"), each followed by those above it:
/// every group has limits of its own, and the narrowest may be any of them. `root`: where /proc and /sys are, "" for the system's.
std::vector<ControlGroup> controlGroups(const std::string &controller, const std::string &root);

} // namespace zero::runtime

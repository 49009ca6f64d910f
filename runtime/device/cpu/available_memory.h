// How much memory this process may still take before something is swapped or killed.
#pragma once
#include "runtime/comm/neighbours.h"
#include <cstdint>
#include <string>

namespace zero::runtime {

struct AvailableMemory {
  uint64_t bytes;
  std::string group; // the control group (its folder) whose limit it is; empty: the whole machine
  int ranks = 1;     // that are about to share it
  uint64_t ofEach() const { return bytes / static_cast<uint64_t>(ranks); }
  std::string sharers() const; // " for the 2 ranks of this machine"; empty for one
};

// What leaves each of the ranks here least: of what the kernel calls available on this machine, and of what the limits of this process's
// control groups leave: its own and all groups around it, of version 1 and 2. Page cache that can be dropped counts as free. `root` is
// where /proc and /sys are looked for; what cannot be read there sets no limit.
AvailableMemory availableMemory(const Neighbours &neighbours = {}, const std::string &root = "");

// Bytes that this process holds already of what counts as used: its own pages and the system's tables for it. Pages of files do not count,
// since they can be dropped.
uint64_t heldMemory(const std::string &root = "");

} // namespace zero::runtime

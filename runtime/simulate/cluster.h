//===- cluster.h - the machines that ranks run on -------------------------------------------------------===//
// Plain data, with a text form in JSON: one object of the names of a rank's machine (machine.h) and of those below, each a number; what is
// left out is as in the machine that "like" names (machines.h), or keeps its default. One description serves zeroc --machine, which takes
// all ranks for alike and alone, and zerorun --simulate, which does not.
#pragma once
#include "runtime/simulate/machine.h"
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

namespace zero::simulate {

struct Cluster {
  Machine rank;                         // of every rank that has none of its own
  std::map<uint64_t, Machine> others{}; // "ranks": by rank an object of what is different there: {"17": {"memory": 5e9}}
  uint64_t ranksPerNode = 1;            // "ranks_per_node": consecutive ones, which share the disks of all of them
  double network = std::numeric_limits<double>::infinity(); // "network": bytes in a second that a node sends to others, and receives
  double variation = 0; // "variation": what a rank does in a step takes this part of it longer, times the magnitude of a number drawn from
                        // a standard normal distribution for each rank and step
  std::array<std::optional<double>, 3>
      bytes{}; // "device_bytes", "host_bytes", "disk_bytes": of a rank, by plan.Tier; none: as many as it needs

  const Machine &machineOf(uint64_t at) const;
};

/// What a rank with this machine has beside the others of `world` in all. A ring of them crosses each node's boundary once, so that none
/// sends faster than the node: N-1 parts. Where each sends every other one its part, each of the R ranks of a node does so to N-R others.
Machine amongRanks(const Cluster &cluster, const Machine &machine, uint64_t world);
/// Where all are equal.
inline Machine equalRank(const Cluster &cluster, uint64_t world) { return amongRanks(cluster, cluster.rank, world); }

/// Throws zero::Error, a sentence that names the file, for what is no such object.
Cluster readCluster(const std::string &path);
/// The same of a text; `name` stands for it in sentences.
Cluster parseCluster(const std::string &text, const std::string &name);

} // namespace zero::simulate

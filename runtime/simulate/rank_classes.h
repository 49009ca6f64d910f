//===- rank_classes.h - which ranks of a cluster do the same ----------------------------------------------===//
#pragma once
#include "runtime/simulate/cluster.h"
#include <vector>

namespace zero::simulate {

/// Nodes that are of the same ranks.
struct NodeClass {
  uint64_t nodes = 0, ranks = 0; // how many there are, and ranks of each
};

/// Equally fast ranks on them.
struct RankClass {
  Machine machine;
  uint64_t first = 0;  // the lowest of them
  uint64_t onNode = 0; // how many each of the nodes has
  size_t node = 0;     // their node's class
  uint64_t all = 0;    // on all nodes
};

struct Classes {
  std::vector<NodeClass> nodes;
  std::vector<RankClass> ranks; // by their first
};

/// Where ranks vary, each is a class of its own.
Classes classesOf(const Cluster &cluster, uint64_t world);

} // namespace zero::simulate

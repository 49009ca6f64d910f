#include "runtime/simulate/rank_classes.h"
#include <algorithm>
#include <map>

namespace zero::simulate {

Classes classesOf(const Cluster &cluster, uint64_t world) {
  Classes classes;
  std::map<std::vector<const Machine *>, size_t> known; // nodes by the machines of their ranks; all ranks without one of their own have one
  uint64_t each = std::min(cluster.ranksPerNode, world);
  for (uint64_t begin = 0; begin < world; begin += each) {
    uint64_t end = std::min(begin + each, world);
    std::vector<const Machine *> machines;
    for (uint64_t rank = begin; rank < end; ++rank) machines.push_back(&cluster.machineOf(rank));
    auto [node, isNew] = known.try_emplace(machines, classes.nodes.size());
    if (cluster.variation > 0) isNew = true, node->second = classes.nodes.size();
    if (isNew) classes.nodes.push_back({0, end - begin});
    ++classes.nodes[node->second].nodes;
    for (uint64_t rank = begin; rank < end; ++rank) {
      const Machine *machine = machines[rank - begin];
      size_t at = classes.ranks.size();
      if (cluster.variation == 0) // one of the node's class that is as fast
        for (size_t i = 0; i < classes.ranks.size() && at == classes.ranks.size(); ++i)
          if (classes.ranks[i].node == node->second && classes.ranks[i].machine == *machine) at = i;
      if (at == classes.ranks.size()) classes.ranks.push_back({*machine, rank, 0, node->second, 0});
      ++classes.ranks[at].all;
      if (isNew) ++classes.ranks[at].onNode;
    }
  }
  return classes;
}

} // namespace zero::simulate

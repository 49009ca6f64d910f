//===- cluster_timeline.h - all ranks of a cluster in virtual time ----------------------------------------===//
// The lanes of each rank as timeline.h has them. What ranks share besides: a collective begins when the last rank has come to it, and ends
// on all of them together; the link that they cross together, in equal shares of those under way; and a node's disks, of which whoever has
// something under way gets an equal share, so that one rank alone is as fast as all of the node's.
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/cluster.h"
#include "runtime/simulate/tasks.h"
#include <algorithm>
#include <functional>

namespace zero::simulate {

/// What ranks did in a step, of those that do the same at the same times: equally fast, on nodes of the same ranks.
struct RankTime {
  uint64_t rank = 0, ranks = 0;        // the first of them, and how many
  std::array<double, kLanes> busy{};   // seconds of each lane, without waiting for other ranks
  std::array<double, kLanes> waited{}; // in which it had come to a collective and other ranks had not
  double longestWait() const { return *std::max_element(waited.begin(), waited.end()); }
};

struct ClusterRun {
  std::vector<double> stepEnds; // seconds, of each step
  std::vector<RankTime> ranks;  // means of the steps after the first, or of that
};

struct ClusterOptions {
  uint64_t steps = 0; // 1 at least
  bool clips = false;
  uint64_t seed = 0; // of the variation
  std::function<void(uint64_t step, double seconds)> ended{};
  /// Of rank 0 and those that the cluster says something of, each task as it ends; of ranks that do the same at the same times one.
  std::function<void(uint64_t rank, int program, size_t task, double begin, double end)> show{};
};

/// Optimizer steps of a plan, which trains. Where nothing varies, those between the fifth and the last are as the fifth, and are neither
/// walked nor shown: the last is not, beside which no other begins. Throws zero::Error where the cluster says something of a rank that the
/// plan does not have.
ClusterRun runOn(const Cluster &cluster, const plan::Plan &plan, const ClusterOptions &options);

} // namespace zero::simulate

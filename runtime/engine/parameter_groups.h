// Groups of parameters with hyper-parameters of their own. Update kernels are elementwise over flat buckets, so an update can be cut where
// the group changes: every element gets the bits that one launch with its group's hyper-parameters would give it.
#pragma once
#include "runtime/device/device.h"
#include "runtime/plan/pieces.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace zero::runtime {

struct CopyCall {
  void *dst;
  const void *src;
  uint64_t bytes;
};

// Iterations of one group; or one iteration whose elements belong to several, computed aside for one of them: what it reads is copied
// to scratch before, and the group's elements of what it wrote are copied back after.
struct UpdatePart {
  std::vector<CopyCall> before;
  LaunchCall launch;
  std::vector<CopyCall> after;
  std::unique_ptr<void *[]> args; // of the launch
};

struct ParameterGroups {
  std::vector<uint32_t> of;         // group of each of the plan's parameters; empty: there is only one
  std::vector<float *> hyper;       // of each group, as the HYPER input has them
  std::vector<std::byte *> scratch; // of each lane
};

// Where the plan's state lies, found once for all its updates.
struct StateMaps {
  explicit StateMaps(const plan::Plan &plan) : contents(plan), pieces(plan) {}
  plan::Contents contents;
  plan::PieceMap pieces;
};

// Bytes of scratch that the updates of these programs need on one lane. Throws a sentence if the plan does not say how its kernels cut
// updates into iterations.
uint64_t scratchBytes(const plan::Plan &plan, const std::vector<uint32_t> &programs);

// The update `whole` that `step` is on rank `rank`, cut by the groups of its bucket's parameters.
std::vector<UpdatePart> cutUpdate(const plan::Plan &plan, const StateMaps &state, const plan::Step &step, const LaunchCall &whole,
                                  const ParameterGroups &groups, uint64_t rank, std::byte *scratch);

} // namespace zero::runtime

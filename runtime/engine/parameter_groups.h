// Groups of parameters with hyper-parameters of their own. Update kernels are elementwise over flat buckets, so an update can be cut where
// the group changes: every element gets the bits that one launch with its group's hyper-parameters would give it.
#pragma once
#include "runtime/device/program.h"
#include "runtime/plan/pieces.h"
#include <cstdint>
#include <span>
#include <vector>

namespace zero::runtime {

// Iterations of one group; or one iteration whose elements belong to several, computed aside for one of them: what it reads is copied
// to scratch before, and the group's elements of what it wrote are copied back after. Kernels for a GPU are launched from their first
// iteration on, at addresses that lie so much further; and since that does not know then where it ends, the last iteration, if it covers
// fewer elements than others, is computed aside as well.
struct UpdatePart {
  std::vector<CopyOf<Place>> before;
  LaunchOp launch;
  std::vector<Address> args; // of the launch
  std::vector<CopyOf<Place>> after;
};

struct ParameterGroups {
  std::vector<uint32_t> of;     // group of each of the plan's parameters; empty: there is only one
  std::vector<Address> hyper;   // of each group, as the HYPER input has them
  std::vector<Address> kept;    // and where a program keeps them for updates that run beside the next one; [0] is the program's own buffer
  std::vector<Address> onHost;  // the same for updates on the host; none if there are no such updates
  std::vector<Address> scratch; // of each lane

  // What an update of a group takes in the place of what it takes where there is only one.
  Address argumentOf(uint32_t group, Address argument) const;
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

// The update that `step` is on rank `rank`, which launches `whole` with `args`, cut by the groups of its bucket's parameters.
std::vector<UpdatePart> cutUpdate(const plan::Plan &plan, const StateMaps &state, const plan::Step &step, const LaunchOp &whole,
                                  std::span<const Address> args, const ParameterGroups &groups, uint64_t rank, Address scratch);

} // namespace zero::runtime

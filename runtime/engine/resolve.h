// Turns the steps of a program into calls whose addresses are known on this rank: what the lanes walk through.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/engine/parameter_groups.h"
#include "runtime/engine/timeline.h"
#include "runtime/plan/plan.pb.h"
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace zero::runtime {

struct AllGatherCall {
  const void *src;
  void *dst;
  uint64_t bytes;
};
struct ReduceScatterCall {
  const float *src;
  float *dst;
  uint64_t count;
  float *staging;
};
struct AllReduceCall {
  float *data;
  uint64_t count;
  float *staging;
};
struct FillCall {
  void *dst;
  uint32_t pattern;
  uint64_t bytes;
};
struct UpdateCall {
  LaunchCall launch;
  const plan::Step *step;
  std::vector<UpdatePart> parts; // instead of the launch, where parameters have hyper-parameters of their own
};

using Call = std::variant<LaunchCall, MatMulCall, AttentionCall, AttentionGradCall, AllGatherCall, ReduceScatterCall, AllReduceCall,
                          CopyCall, FillCall, UpdateCall>;

struct LaneWait {
  int lane;
  uint32_t tick;
};

struct Operation {
  Call call;
  uint32_t step;               // index into Program.steps
  uint32_t waitBegin, waitEnd; // into ResolvedProgram::waits
};

struct ResolvedProgram {
  std::array<std::vector<Operation>, Timeline::kLanes> lanes;
  std::vector<LaneWait> waits;
  std::vector<void *> args; // of all launches, one after another

  bool communicates(int lane) const;
};

using Pointer = std::function<void *(const plan::Ref &)>;

// Throws a sentence for a step this runtime does not have yet. `rank`: of the groups alone; addresses know it.
std::unique_ptr<ResolvedProgram> resolve(const plan::Plan &plan, const plan::Program &program, const std::vector<KernelSymbol> &kernels,
                                         const Pointer &address, const ParameterGroups &groups = {}, uint64_t rank = 0);

// What the device must be prepared for.
AttentionLimits attentionLimits(const plan::Plan &plan, const std::vector<uint32_t> &programs);

} // namespace zero::runtime

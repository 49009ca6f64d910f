//===- traffic.cpp - what a rank sends in a step ------------------------------------------------------===//
#include "runtime/inspect/inspect.h"

namespace zero::inspect {
namespace {
uint64_t elementBytes(plan::DType dtype) {
  return dtype == plan::I64 ? 8 : dtype == plan::F32 || dtype == plan::I32 ? 4 : dtype == plan::BOOL ? 1 : 2;
}
} // namespace

std::vector<int> programsOfStep(const plan::Plan &plan, bool clips) {
  auto find = [&](plan::Program::Role role, bool clip) {
    for (int i = 0; i < plan.programs_size(); ++i)
      if (plan.programs(i).role() == role && plan.programs(i).clips() == clip) return i;
    return -1;
  };
  std::vector<int> programs;
  auto add = [&](int program) {
    if (program >= 0) programs.push_back(program);
  };
  if (plan.accumulate() <= 1) {
    add(find(plan::Program::STEP, clips));
    return programs;
  }
  add(find(plan::Program::FIRST, false));
  for (uint32_t a = 2; a < plan.accumulate(); ++a) add(find(plan::Program::MIDDLE, false));
  add(find(plan::Program::LAST, clips));
  return programs;
}

Traffic trafficOf(const plan::Plan &plan, bool clips) {
  static constexpr const char *names[] = {"all_gather", "reduce_scatter", "all_reduce"};
  Traffic traffic;
  for (int program : programsOfStep(plan, clips))
    for (const plan::Step &step : plan.programs(program).steps()) {
      if (!step.has_collective()) continue;
      const plan::Collective &c = step.collective();
      // Each rank's shard travels to the N - 1 others, or one shard for each of the others leaves.
      // An all_reduce of scalars sends everything to everybody.
      Traffic::Kind &kind = traffic.collectives[names[c.kind()]];
      uint64_t bytes = c.count() * elementBytes(c.dtype()) * (plan.world() - 1);
      kind.calls += 1;
      kind.bytes += bytes;
      traffic.bytes += bytes;
    }
  return traffic;
}

} // namespace zero::inspect

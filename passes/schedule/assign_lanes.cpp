//===- assign_lanes.cpp - plan-assign-lanes --------------------------------------------------------===//
#include "passes/schedule/Passes.h"

#define DEBUG_TYPE "plan-assign-lanes"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_ASSIGNLANESPASS
#include "passes/schedule/Passes.h.inc"

namespace {

struct AssignLanes : impl::AssignLanesPassBase<AssignLanes> {
  void runOnOperation() override {
    for (StepOp step : stepsOf(getOperation()))
      step.setLane(laneOf(step));
  }

  static Lane laneOf(StepOp step) {
    auto collective = dyn_cast<CollectiveStep>(*step);
    if (!collective)
      return Lane::compute;
    bool moves = llvm::any_of(collective.getBuffers(), isParameters);
    return collective.getKind() == CollectiveKind::all_gather && moves ? Lane::gather : Lane::reduce;
  }

  static bool isParameters(Value buffer) {
    StateOp state = stateOf(buffer);
    return state && state.getKind() == BufferKind::parameter;
  }
};

} // namespace
} // namespace zero::schedule

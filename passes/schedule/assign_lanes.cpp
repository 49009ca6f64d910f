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
    llvm::DenseSet<Attribute> parameters; // names of the states that hold parameters
    for (auto state : getOperation()->getParentOfType<ModuleOp>().getOps<StateOp>())
      if (state.getKind() == BufferKind::parameter) parameters.insert(state.getSymNameAttr());
    auto isParameters = [&](Value buffer) {
      auto use = buffer.getDefiningOp<UseOp>();
      return use && parameters.contains(use.getStateAttr().getAttr());
    };
    for (StepOp step : stepsOf(getOperation())) {
      auto collective = dyn_cast<CollectiveStep>(*step);
      bool moves = collective && collective.getKind() == CollectiveKind::all_gather && llvm::any_of(collective.getBuffers(), isParameters);
      step.setLane(moves ? Lane::gather : collective ? Lane::reduce : Lane::compute);
    }
  }
};

} // namespace
} // namespace zero::schedule

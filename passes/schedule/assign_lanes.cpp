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
      if (auto own = buffer.getDefiningOp<BufferOp>()) return own.getTensor() && state::isParameter(own.getTensor()->getRole());
      auto use = buffer.getDefiningOp<UseOp>();
      return use && parameters.contains(use.getStateAttr().getAttr());
    };
    llvm::DenseMap<StringAttr, state::Tier> tiers;
    for (auto state : getOperation()->getParentOfType<ModuleOp>().getOps<StateOp>()) tiers[state.getSymNameAttr()] = tierOf(state);
    auto tierOfBuffer = [&](Value buffer) {
      if (auto own = buffer.getDefiningOp<BufferOp>()) return own.getTier();
      return tiers.lookup(buffer.getDefiningOp<UseOp>().getStateAttr().getAttr());
    };
    for (StepOp step : stepsOf(getOperation())) {
      if (isa<CopyStep, WriteRowsStep>(*step)) {
        state::Tier from = tierOfBuffer(step.getBuffers()[0]), to = tierOfBuffer(step.getBuffers().back());
        step.setLane(from == state::Tier::disk   ? Lane::disk_read
                     : to == state::Tier::disk   ? Lane::disk_write
                     : from == state::Tier::host ? Lane::to_device
                     : to == state::Tier::host   ? Lane::to_host
                                                 : Lane::compute);
        continue;
      }
      if (isa<UpdateStep, FillStep, LaunchStep>(*step) && tierOfBuffer(step.getBuffers()[0]) == state::Tier::host) {
        step.setLane(Lane::update_host);
        continue;
      }
      auto collective = dyn_cast<CollectiveStep>(*step);
      bool moves = collective && collective.getKind() == CollectiveKind::all_gather && llvm::any_of(collective.getBuffers(), isParameters);
      step.setLane(moves ? Lane::gather : collective ? Lane::reduce : Lane::compute);
    }
  }
};

} // namespace
} // namespace zero::schedule

//===- overlap_updates.cpp - plan-overlap-updates -----------------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/order.h"

#define DEBUG_TYPE "plan-overlap-updates"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_OVERLAPUPDATESPASS
#include "passes/schedule/Passes.h.inc"

namespace {

/// An update, or the fill of what no other step than updates and copies touches: the rest of the last block on a disk.
bool isOfUpdate(StepOp step) {
  if (isa<UpdateStep>(*step)) return true;
  return isa<FillStep>(*step) && isTransient(step.getBuffers()[0]) && llvm::all_of(step.getBuffers()[0].getUsers(), [&](Operation *user) {
           auto copy = dyn_cast<CopyStep>(user);
           return user == step || isa<UpdateStep>(user) || (copy && copy.getLane() != Lane::compute);
         });
}

struct OverlapUpdates : impl::OverlapUpdatesPassBase<OverlapUpdates> {
  using OverlapUpdatesPassBase::OverlapUpdatesPassBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    ModuleOp module = program->getParentOfType<ModuleOp>();
    SmallVector<StepOp> steps = stepsOf(program);
    size_t begin = 0; // after lane compute's last step that belongs to no update
    for (auto [at, step] : llvm::enumerate(steps))
      if (step.getLane() == Lane::compute && !isOfUpdate(step)) begin = at + 1;
    ArrayRef<StepOp> tail = ArrayRef(steps).drop_front(begin);
    auto copies = [](StepOp step) { return isa<CopyStep, WriteRowsStep>(*step) && step.getLane() != Lane::compute; };
    auto updatesHere = [](StepOp step) { return isa<UpdateStep>(*step) && step.getLane() == Lane::compute; };
    bool norm = waitsForNorm(program);
    if (llvm::none_of(tail, copies)) return; // nothing to wait for
    auto writesRows = [](StepOp step) { return isa<WriteRowsStep>(*step); };
    bool makesHere = llvm::any_of(tail, updatesHere);
    bool onlyRows = !norm && !makesHere; // else what comes after all else belongs to updates that stand among backward
    if (onlyRows && llvm::none_of(tail, writesRows)) return;
    SymbolTable symbols(module);
    auto restsOnDevice = [&](Value buffer) {
      auto use = buffer.getDefiningOp<UseOp>();
      return use && tierOf(symbols.lookup<StateOp>(use.getStateAttr().getAttr())) == state::Tier::device;
    };
    uint64_t updates = 0;
    for (StepOp step : tail) {
      if (makesHere && step.getLane() == Lane::compute)
        updates += isa<UpdateStep>(*step), step.setLane(Lane::update);
      else if (copies(step) && (!onlyRows || writesRows(step)) &&
               llvm::none_of(step.getBuffers(), restsOnDevice)) // forward waits for what comes there
        step.setLane(step.getLane() == Lane::disk_read || step.getLane() == Lane::to_device ? Lane::update_read : Lane::update_write);
    }
    if (!updates) return; // the host makes them all, or only rows are left to write
    keepHyper(module, tail.front());
    moved += updates;
    StringRef reason = norm ? "they wait for the norm, and" : "they stand after all else, since";
    decide(program, "updates", counted(updates, "update") + " on a lane of their own",
           reason + " what they need comes from another tier: the next step's forward runs beside them");
  }

  /// The host writes the next step's hyper-parameters while updates still read those of this one: they read a copy.
  void keepHyper(ModuleOp module, StepOp first) {
    SymbolTable symbols(module);
    auto stateOf = [&](UseOp use) { return symbols.lookup<StateOp>(use.getStateAttr().getAttr()); };
    auto uses = getOperation().getBody().front().getOps<UseOp>();
    auto hyper = llvm::find_if(uses, [&](UseOp use) { return stateOf(use).getRole() == "hyper"; });
    if (hyper == uses.end()) return;
    auto bytes = int64_t(stateOf(*hyper).getBytes());
    OpBuilder b(*stepsOf(getOperation()).begin());
    auto kept = b.create<BufferOp>(getOperation().getLoc(), BufferType::get(b.getContext()), "hyper.kept", BufferKind::scalar, bytes,
                                   nullptr, nullptr, nullptr, nullptr, nullptr, IntegerAttr(), state::Tier::device);
    (*hyper).getResult().replaceUsesWithIf(kept, [](OpOperand &use) {
      auto update = dyn_cast<UpdateStep>(use.getOwner());
      return update && update.getLane() == Lane::update;
    });
    b.setInsertionPoint(first);
    Refs refs({{*hyper, 0, 0, bytes}}, {{kept, 0, 0, bytes}});
    b.create<CopyStep>(NameLoc::get(b.getStringAttr("hyper.keep"), getOperation().getLoc()), refs.buffers, refs.offsets, refs.strides,
                       refs.bytes, refs.inputs, Lane::compute, DenseI64ArrayAttr());
  }
};

} // namespace
} // namespace zero::schedule

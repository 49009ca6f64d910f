//===- update_gathered.cpp - plan-update-gathered ---------------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/arrivals.h"

#define DEBUG_TYPE "plan-update-gathered"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_UPDATEGATHEREDPASS
#include "passes/schedule/Passes.h.inc"

namespace {

struct UpdateGathered : impl::UpdateGatheredPassBase<UpdateGathered> {
  using UpdateGatheredPassBase::UpdateGatheredPassBase;

  void runOnOperation() override {
    const Order &order = getAnalysis<Order>();
    std::vector<Arrival> gathers = gathersOf(getOperation(), order);
    llvm::DenseMap<Value, size_t> last; // by source: its last gather
    for (auto [i, gather] : llvm::enumerate(gathers)) last[gather.sources[0]] = i;
    bool changes = false;
    for (const Arrival &fetch : fetchesOf(getOperation(), order))
      for (StepOp step : fetch.steps)
        if (auto found = last.find(step.getBuffers()[0]); found != last.end()) changes |= tryToReuse(order, gathers, found->second, step);
    if (!changes) markAllAnalysesPreserved();
  }

  /// `fetch` brings bytes that the last gather of the same source has left on the device. Yields whether they are taken from there.
  bool tryToReuse(const Order &order, ArrayRef<Arrival> gathers, size_t index, StepOp fetch) {
    const Arrival &gather = gathers[index];
    Ref from = accessesOf(fetch)[0].ref;
    int64_t position = order.positionOf(fetch);
    // Of what is gathered from all ranks then, not in place, the shard may stay.
    bool isShard = gather.steps.size() == 2 && gather.buffers[0] != gather.buffers[1];
    bool copied = isa<CopyStep>(*gather.steps[0]) && (gather.steps.size() == 1 || (shards && isShard));
    bool changed = order.lastConflictBefore(position, ArrayRef(accessesOf(fetch)).take_front(1)) >= gather.issued;
    // Kept while others come and go it would cost more than it saves; one comes while the last gradients of this one are computed.
    bool near = index + 2 >= gathers.size() || gathers[index + 2].issued > order.lastTouch(accessesOf(fetch)[1].ref.buffer);
    if (!copied || changed || !near || gather.issued > position) return false;
    Value gathered = gather.buffers[0], fetched = fetch.getBuffers()[1];
    for (OpOperand &use : llvm::make_early_inc_range(fetched.getUses())) {
      Operation *user = use.getOwner();
      if (user == fetch) continue;
      SmallVector<int64_t> offsets(cast<StepOp>(user).getOffsets());
      offsets[use.getOperandNumber()] += from.offset;
      user->setAttr("offsets", DenseI64ArrayAttr::get(&getContext(), offsets));
      use.set(gathered);
    }
    std::string bucket = gather.bucket;
    fetch.erase();
    fetched.getDefiningOp()->erase();
    ++reused;
    if (decided.insert(gathered).second)
      decide(getOperation(), bucket, "updated where it is gathered",
             "at most one other bucket is gathered between its last use and its update");
    return true;
  }

  llvm::DenseSet<Value> decided;
};

} // namespace
} // namespace zero::schedule

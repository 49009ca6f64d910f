//===- defer_writes.cpp - plan-defer-writes -------------------------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/order.h"

#define DEBUG_TYPE "plan-defer-writes"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_DEFERWRITESPASS
#include "passes/schedule/Passes.h.inc"

namespace {

struct DeferWrites : impl::DeferWritesPassBase<DeferWrites> {
  using DeferWritesPassBase::DeferWritesPassBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    const Order &order = getAnalysis<Order>();
    if (program.getRole() != ProgramRole::step || order.size() == 0) // else another program comes after it
      return markAllAnalysesPreserved();
    std::vector<int64_t> live = liveBytes(order);
    int64_t most = *llvm::max_element(live), bytes = 0;
    int64_t room = std::min(int64_t(mostBytes), most - *std::max_element(live.begin(), live.begin() + neededUntil(order) + 1));
    // From the end on, since what is deferred lies there until the end. `fullest`: of the steps after `at`, with all that.
    SmallVector<StepOp> deferred;
    int64_t fullest = 0;
    for (int64_t at = int64_t(order.size()) - 1; at >= 0; --at) {
      if (mayWait(order, at)) {
        auto its = int64_t(order[at].getBuffers()[0].getDefiningOp<BufferOp>().getBytes());
        if (bytes + its > room || fullest + its > most) break;
        bytes += its, fullest += its;
        deferred.push_back(order[at]);
      }
      fullest = std::max(fullest, live[at]);
    }
    if (deferred.empty()) return markAllAnalysesPreserved();
    Operation *last = order[order.size() - 1];
    for (StepOp step : llvm::reverse(deferred)) {
      step.setLane(Lane::update);
      if (step != last) step->moveAfter(last), last = step;
    }
    moved += deferred.size();
    decide(program, "write-backs", Twine(bytes) + " bytes in " + counted(deferred.size(), "step") + " after all updates",
           "until then the disk reads what updates need, for which the next step's forward waits; backward waits for neither");
  }

  /// The first step of lane compute that touches the bucket which forward needs last, of those whose updates run beside it.
  int64_t neededUntil(const Order &order) {
    SymbolTable symbols(getOperation()->getParentOfType<ModuleOp>());
    llvm::StringMap<int64_t> firsts; // by bucket
    int64_t last = 0;
    for (int64_t at = 0; at < int64_t(order.size()); ++at) {
      if (order[at].getLane() == Lane::compute)
        for (Value buffer : order[at].getBuffers())
          if (StringRef bucket = bucketIn(buffer, symbols); !bucket.empty()) firsts.try_emplace(bucket, at);
      if (auto update = dyn_cast<UpdateStep>(*order[at]); update && order[at].getLane() == Lane::update)
        last = std::max(last, firsts.lookup(update.getBucket()));
    }
    return last;
  }

  /// A copy to disk of what nobody but updates reads there, from a buffer that is free after it.
  bool mayWait(const Order &order, int64_t at) {
    StepOp step = order[at];
    if (step.getLane() != Lane::update_write || !isa<CopyStep>(*step)) return false;
    Value from = step.getBuffers()[0], to = step.getBuffers()[1];
    auto use = to.getDefiningOp<UseOp>();
    if (!isTransient(from) || !use || order.lastTouch(from) != at) return false;
    auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(getOperation(), use.getStateAttr());
    return tierOf(state) == state::Tier::disk &&
           llvm::all_of(to.getUsers(), [](Operation *user) { return isOfUpdates(cast<StepOp>(user).getLane()); }) &&
           order.firstConflictAfter(at, accessesOf(step)) == int64_t(order.size());
  }
};

} // namespace
} // namespace zero::schedule

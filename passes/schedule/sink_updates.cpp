//===- sink_updates.cpp - plan-sink-updates ---------------------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/order.h"
#include <map>

#define DEBUG_TYPE "plan-sink-updates"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_SINKUPDATESPASS
#include "passes/schedule/Passes.h.inc"

namespace {

struct SinkUpdates : impl::SinkUpdatesPassBase<SinkUpdates> {
  using SinkUpdatesPassBase::SinkUpdatesPassBase;

  void runOnOperation() override {
    const Order &order = getAnalysis<Order>();
    SmallVector<int64_t> reductions; // the reduce-scatters, each the last collective of its bucket but for an all-gather
    for (int64_t i = 0; i < int64_t(order.size()); ++i)
      if (isReduction(order[i])) reductions.push_back(i);
    if (reductions.size() < 2 || delay == 0) return markAllAnalysesPreserved();
    llvm::DenseMap<Operation *, Operation *> after; // each reduction that something went after, the last of that
    for (size_t i = 0; i + 1 < reductions.size(); ++i)
      sink(order, reductions[i], reductions[std::min(i + size_t(delay), reductions.size() - 1)], after);
  }

  static bool isReduction(StepOp step) {
    auto collective = dyn_cast<CollectiveStep>(*step);
    return collective && collective.getKind() == CollectiveKind::reduce_scatter;
  }

  /// What needs the result of the collective at `reduction`, directly or not, goes after the step at `target`. Further collectives of the
  /// same lane that need nothing else travel with it.
  void sink(const Order &order, int64_t reduction, int64_t target, llvm::DenseMap<Operation *, Operation *> &after) {
    std::map<int64_t, bool> pending{{reduction, false}}; // position, and whether it needs a step that moves
    SmallVector<int64_t> moving;
    while (!pending.empty()) {
      auto [at, needsMoving] = *pending.begin(); // what it needs stands before it and has been dealt with
      pending.erase(pending.begin());
      bool moves = needsMoving || (at != reduction && order[at].getLane() != Lane::reduce);
      if (moves) moving.push_back(at);
      if (at != reduction && isReduction(order[at])) return; // another bucket's gradient depends on this one: leave all as it is
      auto accesses = accessesOf(order[at]);
      int64_t next = order.firstConflictAfter(at, accesses);
      for (; next < target; next = order.firstConflictAfter(next, accesses)) pending[next] |= moves;
      if (next == target && moves) return; // what would move is needed by the step it would go after
    }
    if (moving.empty()) return;
    Operation *&last = after.try_emplace(order[target], order[target]).first->second;
    for (int64_t position : moving) {
      order[position]->moveAfter(last);
      last = order[position];
    }
    sunk += moving.size();
    decide(getOperation(), nameOf(order[reduction]->getLoc()), "followed later by " + counted(moving.size(), "step"),
           "it travels while the gradient of " + Twine(nameOf(order[target]->getLoc())) + " is computed");
  }
};

} // namespace
} // namespace zero::schedule

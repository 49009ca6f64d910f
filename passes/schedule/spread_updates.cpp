//===- spread_updates.cpp - plan-spread-updates -------------------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/order.h"

#define DEBUG_TYPE "plan-spread-updates"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_SPREADUPDATESPASS
#include "passes/schedule/Passes.h.inc"

namespace {

/// The steps of one slice of an update, in their order: what fetches its state, the update, what brings back what it changed.
struct Slice {
  SmallVector<int64_t, 8> steps; // positions
  UpdateStep update;
  int64_t end; // after them, and after gathers of other buckets that stand among them
};

bool isState(Value buffer) { return bool(buffer.getDefiningOp<UseOp>()); }

struct SpreadUpdates : impl::SpreadUpdatesPassBase<SpreadUpdates> {
  using SpreadUpdatesPassBase::SpreadUpdatesPassBase;

  void runOnOperation() override {
    const Order &order = getAnalysis<Order>();
    std::vector<int64_t> live = liveBytes(order);
    int64_t peak = live.empty() ? 0 : *llvm::max_element(live);
    bool changes = false;
    for (int64_t position = 0; position < int64_t(order.size());) {
      SmallVector<Slice> slices = slicesAt(order, position);
      position = slices.empty() ? position + 1 : slices.back().end;
      changes |= slices.size() > 1 && spread(order, slices, live, peak);
    }
    if (!changes) markAllAnalysesPreserved();
  }

  /// The slices of one bucket's update that follow each other from `position` on; none if the first step belongs to none.
  static SmallVector<Slice> slicesAt(const Order &order, int64_t position) {
    auto copyAt = [&](int64_t at) {
      auto copy = at < int64_t(order.size()) ? dyn_cast<CopyStep>(*order[at]) : CopyStep();
      return copy && copy.getLane() != Lane::compute ? copy : CopyStep();
    };
    auto fetchAt = [&](int64_t at) {
      CopyStep copy = copyAt(at);
      auto to = copy ? copy.getBuffers()[1].getDefiningOp<BufferOp>() : BufferOp();
      return to && to.getKind() == BufferKind::fetched;
    };
    SmallVector<Slice> slices;
    for (int64_t at = position;;) {
      Slice slice{{}, nullptr, at};
      for (; fetchAt(slice.end); ++slice.end) slice.steps.push_back(slice.end);
      if (slice.end < int64_t(order.size())) slice.update = dyn_cast<UpdateStep>(*order[slice.end]);
      if (!slice.update || slice.steps.empty()) return slices;            // without a fetch it has nothing to wait for
      if (StepOp(slice.update).getLane() != Lane::compute) return slices; // it does not stand in the way
      if (!slices.empty() && slices[0].update.getBucket() != slice.update.getBucket()) return slices;
      slice.steps.push_back(slice.end++);
      for (; copyAt(slice.end) && !fetchAt(slice.end); ++slice.end)
        if (isState(copyAt(slice.end).getBuffers()[1])) slice.steps.push_back(slice.end);
      at = slice.end;
      slices.push_back(std::move(slice));
    }
  }

  /// Slice i of n goes after the first i/n of what lane compute does until the next update. Yields whether they can.
  bool spread(const Order &order, ArrayRef<Slice> slices, std::vector<int64_t> &live, int64_t peak) {
    SmallVector<int64_t> computing;
    for (int64_t at = slices.back().end; at < int64_t(order.size()) && !isa<UpdateStep>(*order[at]); ++at)
      if (order[at].getLane() == Lane::compute) computing.push_back(at);
    size_t n = slices.size();
    if (computing.size() < n) return false;
    int64_t last = computing[(n - 1) * computing.size() / n - 1], more = bytesOf(order, slices);
    if (!mayMove(order, slices, last) || *std::max_element(&live[slices.back().end], &live[last] + 1) + more > peak) return false;
    for (int64_t at = slices.back().end; at <= last; ++at) live[at] += more;
    for (size_t i = 1; i < n; ++i) {
      Operation *after = order[computing[i * computing.size() / n - 1]];
      for (int64_t at : slices[i].steps) {
        order[at]->moveAfter(after);
        after = order[at];
      }
    }
    moved += n - 1;
    decide(getOperation(), UpdateStep(slices[0].update).getBucket(),
           "updated in " + counted(n, "slice") + " while what follows is computed",
           "what they need comes from another tier, and returns, between them");
    return true;
  }

  /// What is on the device for longer: what all slices work on (the gradient, gathered parameters), and the state of two of them.
  static int64_t bytesOf(const Order &order, ArrayRef<Slice> slices) {
    llvm::DenseSet<Value> seen;
    int64_t bytes = 0;
    for (Value buffer : StepOp(UpdateStep(slices[0].update)).getBuffers())
      if (isTransient(buffer) && seen.insert(buffer).second) {
        auto own = buffer.getDefiningOp<BufferOp>();
        bytes += (own.getKind() == BufferKind::fetched ? 2 : 1) * int64_t(own.getBytes());
      }
    return bytes;
  }

  /// Whether nothing after a slice's steps, up to `last`, is in conflict with them but steps of the slices, which keep their order.
  static bool mayMove(const Order &order, ArrayRef<Slice> slices, int64_t last) {
    llvm::DenseSet<int64_t> own;
    for (const Slice &slice : slices) own.insert(slice.steps.begin(), slice.steps.end());
    return llvm::all_of(slices.drop_front(), [&](const Slice &slice) {
      return llvm::all_of(slice.steps, [&](int64_t at) {
        auto accesses = accessesOf(order[at]);
        int64_t next = order.firstConflictAfter(at, accesses);
        while (next <= last && own.contains(next)) next = order.firstConflictAfter(next, accesses);
        return next > last;
      });
    });
  }
};

} // namespace
} // namespace zero::schedule

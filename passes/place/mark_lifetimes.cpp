//===- mark_lifetimes.cpp - plan-mark-lifetimes -----------------------------------------------------===//
#include "passes/place/Passes.h"

#define DEBUG_TYPE "plan-mark-lifetimes"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
#define GEN_PASS_DEF_MARKLIFETIMESPASS
#include "passes/place/Passes.h.inc"

namespace {

struct Life {
  int64_t first = -1, last = -1;
};

struct MarkLifetimes : impl::MarkLifetimesPassBase<MarkLifetimes> {
  void runOnOperation() override {
    SmallVector<StepOp> steps = stepsOf(getOperation());
    llvm::DenseMap<Value, Life> lives;
    for (auto [position, step] : llvm::enumerate(steps))
      for (Value buffer : step.getBuffers()) {
        Life &life = lives[buffer];
        if (life.first < 0) life.first = position;
        life.last = position;
      }
    extend(steps, lives);
    for (auto buffer : llvm::make_early_inc_range(getOperation().getBody().front().getOps<BufferOp>())) {
      if (buffer.getResult().use_empty()) {
        buffer.erase();
        continue;
      }
      Life life = lives.lookup(buffer.getResult());
      buffer.setFirst(life.first);
      buffer.setLast(life.last);
    }
  }

  /// The host may be a whole backward behind with what rests in its memory. What comes from elsewhere sets its own pace: room of a gradient
  /// is free for the next but one, which waits for that.
  static bool readsFetched(StepOp step) {
    return llvm::any_of(accessesOf(step), [](const Access &access) {
      auto buffer = access.ref.buffer.getDefiningOp<BufferOp>();
      return !access.writes && buffer && buffer.getKind() == BufferKind::fetched;
    });
  }

  /// What a lane beside compute works on stays until somebody needs the result or the lane's next step is issued. One backward sweep:
  /// `touch` holds for each buffer the next step that touches it, by lane.
  static void extend(ArrayRef<StepOp> steps, llvm::DenseMap<Value, Life> &lives) {
    int64_t end = int64_t(steps.size()) - 1;
    llvm::DenseMap<Value, llvm::SmallDenseMap<int, int64_t, 2>> touch;
    llvm::DenseMap<int, int64_t> nextOfLane;
    for (int64_t position = end; position >= 0; --position) {
      StepOp step = steps[position];
      int lane = int(step.getLane());
      if (step.getLane() != Lane::compute) {
        auto next = nextOfLane.find(lane);
        int64_t until = next == nextOfLane.end() ? end : next->second;
        for (const Access &access : accessesOf(step))
          if (access.writes)
            for (auto [other, where] : touch[access.ref.buffer])
              if (other != lane) until = std::min(until, where);
        bool onHost = step.getLane() == Lane::update_host;
        int64_t free = readsFetched(step) && next != nextOfLane.end() ? next->second : end; // what the host's updates read
        for (const Access &access : accessesOf(step)) {
          int64_t &last = lives[access.ref.buffer].last;
          last = std::max(last, onHost && !access.writes ? free : until);
        }
      }
      nextOfLane[lane] = position;
      for (Value buffer : step.getBuffers()) touch[buffer][lane] = position;
    }
  }
};

} // namespace
} // namespace zero::place

//===- insert_waits.cpp - plan-insert-waits ---------------------------------------------------------===//
#include "passes/place/Passes.h"
#include "passes/place/arenas.h"

#define DEBUG_TYPE "plan-insert-waits"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
#define GEN_PASS_DEF_INSERTWAITSPASS
#include "passes/place/Passes.h.inc"

namespace {

struct InsertWaits : impl::InsertWaitsPassBase<InsertWaits> {
  void runOnOperation() override {
    Arenas arenas(getOperation());
    OpBuilder b(&getContext());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      auto steps = arenas.stepsOf(program);
      if (failed(steps)) return signalPassFailure();
      for (auto [step, needed] : llvm::zip(stepsOf(program), findWaits(*steps))) {
        SmallVector<int64_t> pairs;
        for (const LaneWait &wait : needed) pairs.append({wait.lane, wait.tick});
        step.setWaitsAttr(b.getDenseI64ArrayAttr(pairs));
        waits += needed.size();
      }
    }
  }
};

} // namespace
} // namespace zero::place

//===- simplify.cpp - nn-simplify ----------------------------------------------------------------------===//
#include "compiler/nn/patterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/train/Passes.h"
#include "passes/train/duplicates.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_SIMPLIFYPASS
#include "passes/train/Passes.h.inc"

namespace {

struct Simplify : impl::SimplifyPassBase<Simplify> {
  FrozenRewritePatternSet patterns;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    nn::populateSimplifyPatterns(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.useTopDownTraversal = true;
    config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled;
    // Equal operations become one, which may let a pattern see that its operand has one use only, and the other way round.
    for (int round = 0; round < 4; ++round) {
      if (failed(applyPatternsAndFoldGreedily(getOperation(), patterns, config))) {
        getOperation().emitError("simplification does not come to an end");
        return signalPassFailure();
      }
      int64_t removed = removeDuplicates(getOperation());
      duplicates += removed;
      if (!removed) break;
    }
  }
};

} // namespace
} // namespace zero::train

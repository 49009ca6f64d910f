//===- raise_silu.cpp - nn-raise-silu -------------------------------------------------------------===//
#include "passes/raise/Passes.h"
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_RAISESILUPASS
#include "passes/raise/Passes.h.inc"

namespace {

LogicalResult product(MulOp op, PatternRewriter &r) {
  return success(inEitherOrder<MulOp>(op.getResult(), [&](Value x, Value factor) {
    auto sigmoid = factor.getDefiningOp<SigmoidOp>();
    if (!sigmoid || sigmoid.getInput() != x) return false;
    r.replaceOpWithNewOp<SiluOp>(op, x);
    return true;
  }));
}

/// x / (1 + exp(-x))
LogicalResult quotient(DivOp op, PatternRewriter &r) {
  return success(inEitherOrder<AddOp>(op.getRhs(), [&](Value one, Value power) {
    auto exp = power.getDefiningOp<ExpOp>();
    auto negated = exp ? exp.getInput().getDefiningOp<NegOp>() : NegOp();
    if (splatOf(one) != 1.0 || !negated || negated.getInput() != op.getLhs()) return false;
    r.replaceOpWithNewOp<SiluOp>(op, op.getLhs());
    return true;
  }));
}

struct RaiseSilu : impl::RaiseSiluPassBase<RaiseSilu> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(product).add(quotient);
    if (failed(applyPatterns(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

} // namespace
} // namespace zero::raise

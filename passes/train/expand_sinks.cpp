//===- expand_sinks.cpp - nn-expand-sinks -------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/train/Passes.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::train {
#define GEN_PASS_DEF_EXPANDSINKSPASS
#include "passes/train/Passes.h.inc"

namespace {

struct ExpandSinks : impl::ExpandSinksPassBase<ExpandSinks> {
  void runOnOperation() override {
    getOperation().walk([&](AttentionOp op) {
      if (!op.getSink()) return;
      OpBuilder builder(op);
      builder.setInsertionPointAfter(op);
      Build b{builder, op.getLoc()};
      auto plain = cast<AttentionOp>(builder.clone(*op));
      plain.getSinkMutable().clear();
      Value lse = plain.getLse(), sink = b.broadcast(op.getSink(), typeOf(lse).getShape(), {op.getBshd() ? 2 : 1});
      // log(exp(lse) + exp(sink)); where the keys are hidden lse is -inf, and the sink is all there is.
      Value low = b.sub(lse, sink), apart = b.neg(b.max(low, b.neg(low)));
      Value all = b.add(b.max(lse, sink), b.log(b.add(b.exp(apart), 1)));
      Value part = b.rows(b.exp(b.sub(lse, all)), typeOf(plain.getResult()).getShape().back());
      Value values[] = {b.mul(plain.getResult(), part), all};
      op.replaceAllUsesWith(values);
      op.erase();
      ++expanded;
    });
  }
};

} // namespace
} // namespace zero::train

//===- round_extrema.cpp - nn-round-extrema ---------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/stored_types.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_ROUNDEXTREMAPASS
#include "passes/fuse/Passes.h.inc"

namespace {

/// A maximum or minimum, as it is or repeated.
bool isExtremum(Value v) {
  while (isa_and_nonnull<BroadcastOp, ReshapeOp, TransposeOp>(v.getDefiningOp())) v = v.getDefiningOp()->getOperand(0);
  auto reduce = v.getDefiningOp<ReduceOp>();
  return reduce && reduce.getKind() != ReductionKind::sum;
}

struct RoundExtrema : impl::RoundExtremaPassBase<RoundExtrema> {
  using RoundExtremaPassBase::RoundExtremaPassBase;

  void runOnOperation() override {
    Type to = storedType(stored, &getContext());
    if (!to) {
      getOperation().emitError() << "stored is f32, bf16 or f16";
      return signalPassFailure();
    }
    getOperation().walk([&](CompareOp op) {
      bool looks = op.getPredicate() == Predicate::eq && (isExtremum(op.getLhs()) || isExtremum(op.getRhs()));
      if (!looks || !elementOf(op.getLhs()).isF32()) return;
      OpBuilder builder(op);
      Build b{builder, op.getLoc()};
      for (OpOperand &operand : op->getOpOperands()) operand.set(b.cast(b.cast(operand.get(), to), builder.getF32Type()));
      ++rounded;
    });
  }
};

} // namespace
} // namespace zero::fuse

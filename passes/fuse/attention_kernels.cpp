//===- attention_kernels.cpp - nn-attention-kernels --------------------------------------------------------===//
#include "compiler/codegen/attention.h"
#include "compiler/nn/build.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/kernel_table.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_ATTENTIONKERNELSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

struct AttentionKernels : impl::AttentionKernelsPassBase<AttentionKernels> {
  using AttentionKernelsPassBase::AttentionKernelsPassBase;

  void runOnOperation() override {
    KernelTable table(getOperation());
    SmallVector<Operation *> attentions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && !function->hasAttr(NnDialect::kKernelAttr))
        function.walk([&](Operation *op) {
          if (isa<AttentionOp, AttentionGradOp>(op)) attentions.push_back(op);
        });
    for (Operation *op : attentions) {
      auto gradient = dyn_cast<AttentionGradOp>(op);
      if (failed(gradient ? launchGradient(gradient, table) : launch(op, op->getOperands(), table))) return signalPassFailure();
    }
  }

  /// What `last` computes of the operands, by a kernel.
  LogicalResult launch(Operation *last, ValueRange operands, KernelTable &table) {
    llvm::SetVector<Value> inputs(operands.begin(), operands.end());
    const KernelTable::Entry &entry =
        table.kernelFor(SmallVector<Value>(last->getResults()), inputs.getArrayRef(), last->getParentOfType<func::FuncOp>());
    func::FuncOp kernel = entry.function;
    if (!kernel) return last->emitOpError("cannot be made into a kernel: ") << entry.why;
    OpBuilder b(last);
    if (warpgroups && isa<AttentionOp, AttentionGradByRowSumsOp>(last)) kernel->setAttr(codegen::kWarpgroupsAttr, b.getUnitAttr());
    auto made = b.create<LaunchOp>(last->getLoc(), last->getResultTypes(), kernel.getSymName(), inputs.getArrayRef());
    last->replaceAllUsesWith(made);
    last->erase();
    ++launches;
    return success();
  }

  LogicalResult launchGradient(AttentionGradOp op, KernelTable &table) {
    OpBuilder builder(op);
    Build b{builder, op.getLoc()};
    Type sums = elementOf(op.getLse());
    Value out = b.cast(op.getOut(), sums), dout = b.cast(op.getDout(), sums), product = b.mul(out, dout), delta = b.sumLast(product);
    auto gradients =
        builder.create<AttentionGradByRowSumsOp>(b.loc, op.getResultTypes(), op.getQ(), op.getK(), op.getV(), op.getMask(), op.getBias(),
                                                 op.getLse(), delta, op.getDout(), op.getScaleAttr(), op.getCausalAttr(), op.getBshdAttr(),
                                                 op.getPackedKvHeadsAttr(), op.getBandAttr(), op.getSoftcapAttr(), op.getBeyondAttr());
    op->replaceAllUsesWith(gradients);
    Value operands[] = {op.getOut(), op.getDout()};
    op.erase();
    if (failed(launch(delta.getDefiningOp(), operands, table))) return failure();
    for (Value v : {product, dout, out}) // the kernel computes them
      if (Operation *made = v.getDefiningOp(); made && made->use_empty()) made->erase();
    return launch(gradients, gradients->getOperands(), table);
  }
};

} // namespace
} // namespace zero::fuse

//===- fuse.cpp - nn-fuse -----------------------------------------------------------------------------------===//
#include "passes/fuse/Passes.h"
#include "passes/fuse/clusters.h"
#include "passes/fuse/hoist_slices.h"
#include "passes/fuse/outline.h"

using namespace mlir;

namespace zero::fuse {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/fuse/Passes.h.inc"

namespace {

/// More pieces than this are joined in groups first: what joins them all at once is a kernel that reads as many tensors, and writes one.
constexpr size_t kMostPieces = kMostTensors - 1;

void groupPieces(func::FuncOp function) {
  for (auto op : llvm::make_early_inc_range(function.getOps<nn::ConcatOp>())) {
    SmallVector<Value> pieces(op.getInputs());
    if (pieces.size() <= kMostPieces) continue;
    OpBuilder b(op);
    while (pieces.size() > 1) {
      SmallVector<Value> joined;
      for (ArrayRef<Value> rest = pieces; !rest.empty(); rest = rest.drop_front(std::min(kMostPieces, rest.size()))) {
        auto group = rest.take_front(kMostPieces);
        joined.push_back(group.size() == 1 ? group[0] : b.create<nn::ConcatOp>(op.getLoc(), group, op.getDimAttr()).getResult());
      }
      pieces = std::move(joined);
    }
    op.replaceAllUsesWith(pieces[0]);
    op.erase();
  }
}

struct FusePass : impl::FusePassBase<FusePass> {
  void runOnOperation() override {
    KernelTable table(getOperation());
    SmallVector<func::FuncOp> functions;
    for (auto f : getOperation().getOps<func::FuncOp>())
      if (!f.isExternal() && !f->hasAttr(nn::NnDialect::kKernelAttr)) functions.push_back(f);
    for (func::FuncOp f : functions) {
      if (failed(nn::verifyTensorFunction(f))) return signalPassFailure();
      groupPieces(f);
      hoistSlices(f);
      auto count = outline(f, formClusters(f), table);
      if (failed(count)) return signalPassFailure();
      launches += *count;
    }
    kernels += table.size();
  }
};

} // namespace

} // namespace zero::fuse

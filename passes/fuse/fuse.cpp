//===- fuse.cpp - nn-fuse and the pipeline -----------------------------------------------------------------===//
#include "mlir/Pass/PassRegistry.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/clusters.h"
#include "passes/fuse/outline.h"

using namespace mlir;

namespace zero::fuse {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/fuse/Passes.h.inc"

namespace {

struct FusePass : impl::FusePassBase<FusePass> {
  void runOnOperation() override {
    KernelTable table(getOperation());
    SmallVector<func::FuncOp> functions;
    for (auto f : getOperation().getOps<func::FuncOp>())
      if (!f.isExternal() && !f->hasAttr(nn::NnDialect::kKernelAttr)) functions.push_back(f);
    for (func::FuncOp f : functions) {
      if (failed(nn::verifyTensorFunction(f))) return signalPassFailure();
      auto count = outline(f, formClusters(f), table);
      if (failed(count)) return signalPassFailure();
      launches += *count;
    }
    kernels += table.size();
  }
};

} // namespace

void buildPipeline(OpPassManager &pm) { pm.addPass(createFusePass()); }

void registerPasses() {
  registerZeroFusePasses();
  PassPipelineRegistration<>("zero-fuse-pipeline", "From primitives to launches of kernels", [](OpPassManager &pm) { buildPipeline(pm); });
}

} // namespace zero::fuse

//===- pipeline.cpp - the fuse phase ----------------------------------------------------------------------===//
#include "mlir/Pass/PassRegistry.h"
#include "passes/fuse/Passes.h"

using namespace mlir;

namespace zero::fuse {

void buildPipeline(OpPassManager &pm, const Options &options) {
  pm.addPass(createExpandPutAlongPass({/*compare=*/options.manyThreads}));
  if (!options.blocks) pm.addPass(createExpandBlocksPass());
  if (options.world > 1 || options.rowsApart) pm.addPass(createTableRowsPass({options.world}));
  if (options.manyThreads) {
    pm.addPass(createFewRowsPass());
    pm.addPass(createSplitReductionsPass());
  }
  if (options.precision != "f32") pm.addPass(createRoundExtremaPass({options.precision}));
  pm.addPass(createFusePass());
  if (options.precision != "f32" || options.gradients != "f32")
    pm.addPass(createMixedPrecisionPass({options.precision, options.gradients}));
  if (options.epilogues) pm.addPass(createBiasInProductsPass());
  if (options.manyThreads) pm.addPass(createSplitColumnsPass());
}

void addRematerialization(OpPassManager &pm, uint64_t keepBytes) { pm.addPass(createRematerializePass({keepBytes})); }

void addAttentionKernels(OpPassManager &pm, bool warpgroups) { pm.addPass(createAttentionKernelsPass({warpgroups})); }

void registerPasses() {
  registerZeroFusePasses();
  PassPipelineRegistration<>("zero-fuse-pipeline", "From primitives to launches of kernels",
                             [](OpPassManager &pm) { buildPipeline(pm, {}); });
}

} // namespace zero::fuse

//===- pipeline.cpp - the order of the raising passes ----------------------------------------------===//
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/raise/Passes.h"

using namespace mlir;

namespace zero::raise {

void buildPipeline(OpPassManager &pm, bool kernels) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createFoldConstantsPass());
  functions.addPass(createTidyImportPass());
  functions.addPass(createCSEPass());
  // A conversion or a mask may have become constant only now.
  functions.addPass(createFoldConstantsPass());
  functions.addPass(createChannelsLastPass());
  functions.addPass(createRaiseGeluPass());
  functions.addPass(createRaiseSiluPass());
  functions.addPass(createRaiseNormPass());
  functions.addPass(createRaiseAttentionPass());
  // On a GPU a block is a product of a batch, which has the matrix copied.
  functions.addPass(createRaiseGroupedPass({kernels ? 512 : 128, kernels ? 1 : 2}));
  functions.addPass(createRaiseExpertsPass({kernels ? 512 : 128, kernels ? 1 : 2}));
  functions.addPass(createFoldConstantsPass());
  functions.addPass(createTidyImportPass());
  functions.addPass(createCSEPass());
  if (kernels) functions.addPass(createExpandAttentionPass({/*kernels=*/true}));
}

void registerPasses() {
  registerZeroRaisePasses();
  PassPipelineRegistration<>("nn-raise-pipeline", "Constant folding, simplification and raising of an imported graph",
                             [](OpPassManager &pm) { buildPipeline(pm); });
}

} // namespace zero::raise

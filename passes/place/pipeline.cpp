//===- pipeline.cpp - the place phase ---------------------------------------------------------------===//
#include "mlir/Pass/PassRegistry.h"
#include "passes/place/Passes.h"

using namespace mlir;

namespace zero::place {

void buildPipeline(OpPassManager &pm) {
  pm.nest<planir::ProgramOp>().addPass(createMarkLifetimesPass());
  pm.addPass(createAssignOffsetsPass());
  pm.addPass(createInsertWaitsPass());
  pm.addPass(createVerifyPass());
}

void registerPasses() {
  registerZeroPlacePasses();
  PassPipelineRegistration<>("zero-place-pipeline", "plan-mark-lifetimes to plan-verify: offsets and waits",
                             [](OpPassManager &pm) { buildPipeline(pm); });
}

} // namespace zero::place

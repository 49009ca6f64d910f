//===- pipeline.cpp - the shard phase as a story ---------------------------------------------------===//
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/shard/Passes.h"

using namespace mlir;

namespace zero::shard {

void buildPipeline(OpPassManager &pm, const PartitionPassOptions &options) {
  pm.addPass(createPartitionPass(options));
  pm.addPass(createProgramsPass());
  // First the obviously correct form, then the fast one.
  pm.addPass(createInsertMovementPass());
  pm.addPass(createMergeGathersPass());
  pm.addPass(createVerifyShardPass());
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<int64_t> world{*this, "world", llvm::cl::init(1)};
  Option<int64_t> stage{*this, "stage", llvm::cl::init(0)};
  Option<int64_t> accumulate{*this, "accumulate", llvm::cl::init(1)};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::init("adamw")};
  Option<std::string> offloadParams{*this, "offload-params", llvm::cl::init("none")};
  Option<std::string> offloadOptimizer{*this, "offload-optimizer", llvm::cl::init("none")};
  Option<int64_t> bucketElements{*this, "bucket-elements", llvm::cl::init(0)};
};
} // namespace

void registerPasses() {
  registerZeroShardPasses();
  PassPipelineRegistration<PipelineOptions>("zero-shard-pipeline", "The whole shard phase",
                                            [](OpPassManager &pm, const PipelineOptions &o) {
                                              PartitionPassOptions options;
                                              options.world = o.world;
                                              options.stage = o.stage;
                                              options.accumulate = o.accumulate;
                                              options.optimizer = o.optimizer;
                                              options.offloadParams = o.offloadParams;
                                              options.offloadOptimizer = o.offloadOptimizer;
                                              options.bucketElements = o.bucketElements;
                                              buildPipeline(pm, options);
                                            });
}

} // namespace zero::shard

//===- pipeline.cpp - the shard phase as a story ---------------------------------------------------===//
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/shard/Passes.h"

using namespace mlir;

namespace zero::shard {

void buildPipeline(OpPassManager &pm, const Options &options) {
  pm.addPass(createPartitionPass(options.partition));
  pm.addPass(createAssignTiersPass(options.tiers));
  pm.addPass(createProgramsPass(options.programs));
  if (options.partition.vertical && options.partition.accumulate > 1) pm.addPass(createInterleavePass());
  // First the obviously correct form, then the fast one.
  pm.addPass(createInsertMovementPass(options.movement));
  pm.addPass(createMergeGathersPass(options.merges));
  pm.addPass(createVerifyShardPass());
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<int64_t> world{*this, "world", llvm::cl::init(1)};
  Option<int64_t> stage{*this, "stage", llvm::cl::init(0)};
  Option<int64_t> accumulate{*this, "accumulate", llvm::cl::init(1)};
  Option<bool> vertical{*this, "vertical", llvm::cl::init(false)};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::init("adamw")};
  Option<std::string> clip{*this, "clip", llvm::cl::init("any")};
  Option<std::string> offloadParams{*this, "offload-params", llvm::cl::init("none")};
  Option<std::string> offloadOptimizer{*this, "offload-optimizer", llvm::cl::init("none")};
  Option<int64_t> deviceBytes{*this, "device-bytes", llvm::cl::init(-1)};
  Option<int64_t> hostBytes{*this, "host-bytes", llvm::cl::init(0)};
  Option<bool> fetchMasters{*this, "fetch-masters", llvm::cl::init(false)};
  Option<bool> spread{*this, "spread", llvm::cl::init(false)};
  Option<bool> hostUpdates{*this, "host-updates", llvm::cl::init(false)};
  Option<bool> diskUpdates{*this, "disk-updates", llvm::cl::init(false)};
  Option<int64_t> bucketElements{*this, "bucket-elements", llvm::cl::init(0)};
};
} // namespace

void registerPasses() {
  registerZeroShardPasses();
  PassPipelineRegistration<PipelineOptions>("zero-shard-pipeline", "The whole shard phase",
                                            [](OpPassManager &pm, const PipelineOptions &o) {
                                              Options options;
                                              options.partition.world = o.world;
                                              options.partition.stage = o.stage;
                                              options.partition.accumulate = o.accumulate;
                                              options.partition.vertical = o.vertical;
                                              options.partition.optimizer = o.optimizer;
                                              options.partition.bucketElements = o.bucketElements;
                                              options.programs.clip = o.clip;
                                              options.tiers.offloadParams = o.offloadParams;
                                              options.tiers.offloadOptimizer = o.offloadOptimizer;
                                              options.tiers.deviceBytes = o.deviceBytes;
                                              options.tiers.hostBytes = o.hostBytes;
                                              options.tiers.fetchMasters = o.fetchMasters;
                                              options.tiers.spread = o.spread;
                                              options.tiers.hostUpdates = o.hostUpdates;
                                              options.tiers.diskUpdates = o.diskUpdates;
                                              buildPipeline(pm, options);
                                            });
}

} // namespace zero::shard

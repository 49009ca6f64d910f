//===- pipeline.cpp - the shard phase as a story ---------------------------------------------------===//
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/pipeline_option.h"
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
  Options options;
  OptionOf<int64_t> world{*this, options.partition.world, "world"};
  OptionOf<int64_t> stage{*this, options.partition.stage, "stage"};
  OptionOf<int64_t> accumulate{*this, options.partition.accumulate, "accumulate"};
  OptionOf<bool> vertical{*this, options.partition.vertical, "vertical"};
  OptionOf<std::string> optimizer{*this, options.partition.optimizer, "optimizer"};
  OptionOf<std::string> clip{*this, options.programs.clip, "clip"};
  OptionOf<std::string> offloadParams{*this, options.tiers.offloadParams, "offload-params"};
  OptionOf<std::string> offloadOptimizer{*this, options.tiers.offloadOptimizer, "offload-optimizer"};
  OptionOf<int64_t> deviceBytes{*this, options.tiers.deviceBytes, "device-bytes"};
  OptionOf<int64_t> hostBytes{*this, options.tiers.hostBytes, "host-bytes"};
  OptionOf<bool> fetchMasters{*this, options.tiers.fetchMasters, "fetch-masters"};
  OptionOf<bool> spread{*this, options.tiers.spread, "spread"};
  OptionOf<bool> hostUpdates{*this, options.tiers.hostUpdates, "host-updates"};
  OptionOf<bool> diskUpdates{*this, options.tiers.diskUpdates, "disk-updates"};
  OptionOf<int64_t> bucketElements{*this, options.partition.bucketElements, "bucket-elements"};
};
} // namespace

void registerPasses() {
  registerZeroShardPasses();
  PassPipelineRegistration<PipelineOptions>("zero-shard-pipeline", "The whole shard phase",
                                            [](OpPassManager &pm, const PipelineOptions &given) { buildPipeline(pm, given.options); });
}

} // namespace zero::shard

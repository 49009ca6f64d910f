//===- pipeline.cpp - the schedule phase ------------------------------------------------------------===//
#include "mlir/Pass/PassRegistry.h"
#include "passes/pipeline_option.h"
#include "passes/schedule/Passes.h"

using namespace mlir;

namespace zero::schedule {

void buildPipeline(OpPassManager &pm, const Options &options) {
  LowerPassOptions lower;
  lower.librarySums = options.librarySums;
  lower.tf32 = options.tf32;
  pm.addPass(createLowerPass(lower));
  OpPassManager &program = pm.nest<planir::ProgramOp>();
  program.addPass(createAssignLanesPass());
  DeferProductsPassOptions defer;
  defer.grow = options.activations != "none" && options.fetchAhead > 0; // what waits does so elsewhere; of least memory nothing is spared
  program.addPass(createDeferProductsPass(defer));
  ElideGathersPassOptions elide;
  elide.residentBytes = options.residentBytes;
  program.addPass(createElideGathersPass(elide));
  program.addPass(createUpdateGatheredPass({options.keepShards}));
  if (options.activations != "none") {
    OffloadActivationsPassOptions offload;
    offload.tier = options.activations;
    offload.mostBytes = options.activationBytes;
    offload.work = options.activationWork;
    program.addPass(createOffloadActivationsPass(offload));
  }
  HoistGathersPassOptions hoist;
  hoist.ahead = options.ahead;
  hoist.gatherBytes = options.gatherBytes;
  hoist.earlyBytes = options.earlyBytes;
  program.addPass(createHoistGathersPass(hoist));
  SinkUpdatesPassOptions sink;
  sink.delay = options.delay;
  program.addPass(createSinkUpdatesPass(sink));
  if (options.delay > 0) program.addPass(createSpreadUpdatesPass()); // gradients wait longer
  HoistFetchesPassOptions fetch;                                     // after the updates' last move
  fetch.ahead = options.fetchAhead;
  program.addPass(createHoistFetchesPass(fetch));
  if (options.fetchAhead > 0) program.addPass(createOverlapUpdatesPass()); // what runs beside the next step takes memory beside it
  if (options.deferredBytes > 0) {
    DeferWritesPassOptions writes;
    writes.mostBytes = options.deferredBytes;
    program.addPass(createDeferWritesPass(writes));
  }
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Options options;
  OptionOf<int64_t> ahead{*this, options.ahead, "ahead", llvm::cl::desc("Buckets gathered beyond the one in use")};
  OptionOf<int64_t> gatherBytes{*this, options.gatherBytes, "gather-bytes", llvm::cl::desc("The same as a budget in bytes; 0: by ahead")};
  OptionOf<int64_t> residentBytes{*this, options.residentBytes, "resident-bytes",
                                  llvm::cl::desc("Gathered buckets kept beyond their uses")};
  OptionOf<int64_t> earlyBytes{*this, options.earlyBytes, "early-bytes", llvm::cl::desc("Buckets gathered beside the step before")};
  OptionOf<std::string> activations{*this, options.activations, "offload-activations",
                                    llvm::cl::desc("Tier where activations wait for backward")};
  OptionOf<int64_t> activationBytes{*this, options.activationBytes, "activation-bytes",
                                    llvm::cl::desc("Bytes of them that leave; -1: all")};
  OptionOf<int64_t> activationWork{*this, options.activationWork, "activation-work",
                                   llvm::cl::desc("Multiply-adds beside which a byte of them leaves; 0: by steps alone")};
  OptionOf<int64_t> fetchAhead{*this, options.fetchAhead, "fetch-ahead", llvm::cl::desc("Optimizer state fetched beyond that in use")};
  OptionOf<int64_t> deferredBytes{*this, options.deferredBytes, "deferred-bytes",
                                  llvm::cl::desc("Bytes that updates change on disk and that are written after all of them")};
  OptionOf<int64_t> delay{*this, options.delay, "delay", llvm::cl::desc("Buckets whose gradient may travel beyond the first")};
  OptionOf<bool> keepShards{*this, options.keepShards, "keep-shards", llvm::cl::desc("Fetched shards stay for their update")};
  OptionOf<bool> librarySums{*this, options.librarySums, "library-sums", llvm::cl::desc("Sums are made by the device's library")};
};
} // namespace

void registerPasses() {
  registerZeroSchedulePasses();
  PassPipelineRegistration<PipelineOptions>("zero-schedule-pipeline", "plan-lower to plan-defer-writes: lanes and order",
                                            [](OpPassManager &pm, const PipelineOptions &given) { buildPipeline(pm, given.options); });
}

} // namespace zero::schedule

//===- pipeline.cpp - the schedule phase ------------------------------------------------------------===//
#include "mlir/Pass/PassRegistry.h"
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
  Option<int64_t> ahead{*this, "ahead", llvm::cl::desc("Buckets gathered beyond the one in use"), llvm::cl::init(2)};
  Option<int64_t> gatherBytes{*this, "gather-bytes", llvm::cl::desc("The same as a budget in bytes; 0: by ahead"), llvm::cl::init(0)};
  Option<int64_t> residentBytes{*this, "resident-bytes", llvm::cl::desc("Gathered buckets kept beyond their uses"), llvm::cl::init(0)};
  Option<int64_t> earlyBytes{*this, "early-bytes", llvm::cl::desc("Buckets gathered beside the step before"), llvm::cl::init(0)};
  Option<std::string> activations{*this, "offload-activations", llvm::cl::desc("Tier where activations wait for backward"),
                                  llvm::cl::init("none")};
  Option<int64_t> activationBytes{*this, "activation-bytes", llvm::cl::desc("Bytes of them that leave; -1: all"), llvm::cl::init(-1)};
  Option<int64_t> activationWork{*this, "activation-work",
                                 llvm::cl::desc("Multiply-adds beside which a byte of them leaves; 0: by steps alone"), llvm::cl::init(0)};
  Option<int64_t> fetchAhead{*this, "fetch-ahead", llvm::cl::desc("Optimizer state fetched beyond that in use"), llvm::cl::init(3)};
  Option<int64_t> deferredBytes{*this, "deferred-bytes",
                                llvm::cl::desc("Bytes that updates change on disk and that are written after all of them"),
                                llvm::cl::init(0)};
  Option<int64_t> delay{*this, "delay", llvm::cl::desc("Buckets whose gradient may travel beyond the first"), llvm::cl::init(1)};
  Option<bool> keepShards{*this, "keep-shards", llvm::cl::desc("Fetched shards stay for their update"), llvm::cl::init(false)};
  Option<bool> librarySums{*this, "library-sums", llvm::cl::desc("Sums are made by the device's library"), llvm::cl::init(false)};
};
} // namespace

void registerPasses() {
  registerZeroSchedulePasses();
  PassPipelineRegistration<PipelineOptions>(
      "zero-schedule-pipeline", "plan-lower to plan-defer-writes: lanes and order", [](OpPassManager &pm, const PipelineOptions &given) {
        buildPipeline(pm,
                      {given.ahead, given.gatherBytes, given.residentBytes, given.earlyBytes, given.fetchAhead, given.deferredBytes,
                       given.delay, given.keepShards, given.activations, given.activationBytes, given.activationWork, given.librarySums});
      });
}

} // namespace zero::schedule

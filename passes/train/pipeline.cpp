//===- pipeline.cpp - the train phase ------------------------------------------------------------------===//
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/train/Passes.h"

using namespace mlir;

namespace zero::train {

void buildPipeline(OpPassManager &pm, const TrainOptions &options) {
  AddLossPassOptions loss;
  loss.losses = options.losses;
  loss.ignoreIndex = options.ignoreIndex;
  loss.labelSmoothing = options.labelSmoothing;
  pm.addPass(createAddLossPass(loss));
  // What the loss does not need, and what rules should not have to differentiate.
  pm.addNestedPass<func::FuncOp>(createSimplifyPass());
  // Before tiles of tokens, which share the weights; after those of weights, which are cut as they are.
  bool pads = options.classMultiple > 1, cuts = options.tileParts > 1;
  if (pads && !cuts) pm.addPass(createPadClassesPass({options.classMultiple}));
  // Whole products: tiles of parameters are then those of each tile of tokens.
  if (options.tileTokens) pm.addPass(createTileTokensPass({options.tileTokens}));
  TilePassOptions tile;
  tile.parts = options.tileParts;
  tile.keepLogits = options.keepLogits;
  pm.addPass(createTilePass(tile));
  if (pads && cuts) pm.addPass(createPadClassesPass({options.classMultiple}));
  pm.addPass(createDifferentiatePass());
  if (options.tileTokens) pm.addPass(createSinkLossesPass());
  // Before composites fall apart: duplicates are found whole.
  pm.addNestedPass<func::FuncOp>(createSimplifyPass());
  if (options.epilogues) {
    pm.addNestedPass<func::FuncOp>(createGeluInProductsPass());
    pm.addNestedPass<func::FuncOp>(createLogitsInProductsPass());
  }
  pm.addPass(createDecomposePass());
  pm.addPass(createExpandSinksPass());
  pm.addNestedPass<func::FuncOp>(createSimplifyPass());
  RecomputePassOptions recompute;
  recompute.mode = options.recompute;
  pm.addNestedPass<func::FuncOp>(createRecomputePass(recompute));
  pm.addNestedPass<func::FuncOp>(createSimplifyPass());
  if (options.keepLogits) pm.addPass(createLossLastPass());
  pm.addPass(createVerifyTrainPass());
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  ListOption<std::string> losses{*this, "loss"};
  Option<int64_t> ignoreIndex{*this, "ignore-index", llvm::cl::init(-100)};
  Option<double> labelSmoothing{*this, "label-smoothing", llvm::cl::init(0)};
  Option<std::string> recompute{*this, "recompute", llvm::cl::init("auto")};
  Option<int64_t> tileParts{*this, "tile", llvm::cl::init(1)};
  Option<int64_t> tileTokens{*this, "tile-tokens", llvm::cl::init(0)};
  Option<bool> keepLogits{*this, "keep-logits", llvm::cl::init(false)};
  Option<int64_t> classMultiple{*this, "class-multiple", llvm::cl::init(1)};
  Option<bool> epilogues{*this, "epilogues", llvm::cl::init(false)};
};
} // namespace

void registerPasses() {
  registerZeroTrainPasses();
  PassPipelineRegistration<PipelineOptions>("zero-train-pipeline", "The whole train phase",
                                            [](OpPassManager &pm, const PipelineOptions &o) {
                                              TrainOptions options;
                                              options.losses.assign(o.losses.begin(), o.losses.end());
                                              options.ignoreIndex = o.ignoreIndex;
                                              options.labelSmoothing = o.labelSmoothing;
                                              options.recompute = o.recompute;
                                              options.tileParts = o.tileParts;
                                              options.tileTokens = o.tileTokens;
                                              options.keepLogits = o.keepLogits;
                                              options.classMultiple = o.classMultiple;
                                              options.epilogues = o.epilogues;
                                              buildPipeline(pm, options);
                                            });
}

} // namespace zero::train

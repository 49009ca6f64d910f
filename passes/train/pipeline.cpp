//===- pipeline.cpp - the train phase ------------------------------------------------------------------===//
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/pipeline_option.h"
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
  TrainOptions options;
  ListOption<std::string> losses{*this, "loss"};
  OptionOf<int64_t> ignoreIndex{*this, options.ignoreIndex, "ignore-index"};
  OptionOf<double> labelSmoothing{*this, options.labelSmoothing, "label-smoothing"};
  OptionOf<std::string> recompute{*this, options.recompute, "recompute"};
  OptionOf<int64_t> tileParts{*this, options.tileParts, "tile"};
  OptionOf<int64_t> tileTokens{*this, options.tileTokens, "tile-tokens"};
  OptionOf<bool> keepLogits{*this, options.keepLogits, "keep-logits"};
  OptionOf<int64_t> classMultiple{*this, options.classMultiple, "class-multiple"};
  OptionOf<bool> epilogues{*this, options.epilogues, "epilogues"};
};
} // namespace

void registerPasses() {
  registerZeroTrainPasses();
  PassPipelineRegistration<PipelineOptions>("zero-train-pipeline", "The whole train phase",
                                            [](OpPassManager &pm, const PipelineOptions &given) {
                                              TrainOptions options = given.options;
                                              options.losses.assign(given.losses.begin(), given.losses.end());
                                              buildPipeline(pm, options);
                                            });
}

} // namespace zero::train

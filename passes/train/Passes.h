//===- Passes.h - the train phase ------------------------------------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace zero::train {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/train/Passes.h.inc"

struct TrainOptions {
  std::vector<std::string> losses{"cross_entropy"}; // of the weighted sum, as losses.h reads them
  int64_t ignoreIndex = -100;
  double labelSmoothing = 0;
  std::string recompute = "auto"; // or "none"
  int64_t tileParts = 1;          // as nn-tile's `parts`
  int64_t tileTokens = 0;         // as nn-tile-tokens' `tokens`
  bool keepLogits = false;        // as nn-tile's `keep-logits`
  int64_t classMultiple = 1;      // as nn-pad-classes' `multiple`; 1: not run
  bool epilogues = false;         // the target's library adds a bias to what it multiplies, and takes GELU of it, in half precision
};

/// What nn-tile-tokens has done of @train, on the module: [regions, tiles].
inline constexpr const char *kTokenTiles = "nn.token_tiles";

/// What nn-tile has kept of @train, on the module: bytes of [logits, the gradient of the weights that make them].
inline constexpr const char *kKeptLogits = "nn.kept_logits";
/// Whether the logits are more.
bool keepsLargeLogits(mlir::ModuleOp module);

/// Tokens of a micro-step, of a module that is not trained yet: the most rows of a product.
int64_t tokensOf(mlir::ModuleOp module);

/// add-loss, tile tokens and parameters, pad classes, differentiate, sink losses, GELU in products, decompose, recompute with
/// simplification between them, loss last, verify: from `@forward` to `@train` and `@eval`.
void buildPipeline(mlir::OpPassManager &pm, const TrainOptions &options);
/// All passes, and the phase as `zero-train-pipeline`.
void registerPasses();
} // namespace zero::train

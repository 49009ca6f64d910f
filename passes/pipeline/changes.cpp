//===- changes.cpp - what passes did to the step, for people --------------------------------------------===//
#include "passes/pipeline/changes.h"
#include "passes/fuse/Passes.h"
#include "passes/train/Passes.h"
#include "runtime/inspect/names.h"
#include "runtime/plan/pieces.h"

using namespace mlir;

namespace zero::pipeline {
namespace {

using inspect::counted;
using inspect::grouped;
using Line = std::array<std::string, 3>;

Line tiles(const plan::Plan &plan, const Settings &settings) {
  uint64_t parameters = 0, tiles = 0, largest = 0;
  for (const plan::Parameter &parameter : plan.parameters()) {
    if (parameter.pieces_size() < 2) continue;
    ++parameters;
    tiles += uint64_t(parameter.pieces_size());
    for (const plan::Piece &piece : parameter.pieces()) largest = std::max(largest, plan::elementsOf(parameter, piece));
  }
  std::string choice = counted(parameters, "parameter") + " in " + counted(tiles, "tile") + " of at most " + counted(largest, "element");
  return {"tiles", parameters ? choice : "none", "--tile allows 1/" + std::to_string(settings.tiling.parts) + " of the largest parameter"};
}

/// What nn-tile did, where backward does not make logits again.
Line keptLogits(ModuleOp module) {
  return {
      "logits", "kept for backward in " + grouped(numberAt(module, train::kKeptLogits, 0)) + " bytes",
      "--device-memory; they are not made again, and the gradient of the weights that make them, which would else be there whole, takes " +
          grouped(numberAt(module, train::kKeptLogits, 1))};
}

/// What nn-tile-tokens did.
Line tokenTiles(ModuleOp module, const CompileOptions &options, const Settings &settings) {
  uint64_t regions = numberAt(module, train::kTokenTiles, 0), tiles = numberAt(module, train::kTokenTiles, 1);
  std::string choice = grouped(regions) + (regions == 1 ? " region" : " regions") + " of a step in " + counted(tiles, "tile") +
                       " of at most " + counted(uint64_t(settings.tiling.tokens), "token");
  return {"tiles of tokens", regions ? choice : "none",
          std::string(options.tileTokens ? "--tile-tokens" : "--device-memory") +
              (regions ? "; backward does each tile again" : "; a micro-step has no more tokens, or nothing wide that ends")};
}

/// What nn-rematerialize did.
Line recomputation(ModuleOp module, const CompileOptions &options) {
  auto at = [&](unsigned i) { return numberAt(module, fuse::kRematerialized, i); };
  uint64_t again = at(4), all = at(5);
  return {"recomputation",
          grouped(at(0)) + " of " + counted(at(1), "block") + " made again in backward, which keeps " + grouped(at(2)) +
              " bytes of activations of the " + grouped(at(3)) + " it reads",
          (options.recompute == "full" ? "--recompute full" : "--device-memory") + std::string("; costs ") + grouped(again) +
              " multiply-adds in each micro-step, " + std::to_string(all ? (again * 100 + all / 2) / all : 0) + " % more"};
}

} // namespace

uint64_t numberAt(ModuleOp module, const char *attribute, unsigned i) {
  auto numbers = module->getAttrOfType<ArrayAttr>(attribute);
  return numbers ? uint64_t(cast<IntegerAttr>(numbers[i]).getInt()) : 0;
}

std::vector<Line> changesOf(ModuleOp module, const plan::Plan &plan, const CompileOptions &options, const Settings &settings) {
  std::vector<Line> lines;
  if (settings.tiling.parts > 1) lines.push_back(tiles(plan, settings));
  if (module->hasAttr(train::kKeptLogits)) lines.push_back(keptLogits(module));
  if (settings.tiling.tokens > 0) lines.push_back(tokenTiles(module, options, settings));
  if (module->hasAttr(fuse::kRematerialized)) lines.push_back(recomputation(module, options));
  return lines;
}

} // namespace zero::pipeline

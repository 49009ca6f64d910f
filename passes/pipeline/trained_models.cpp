//===- trained_models.cpp - the model, trained with each tiling that the search asks for ------------------===//
#include "passes/pipeline/trained_models.h"
#include "passes/pipeline/few_layers.h"
#include "passes/pipeline/quiet.h"

using namespace mlir;

namespace zero::pipeline {

TrainedModels::Model &TrainedModels::of(std::map<Tiling, Model> &made, Tiling tiling) {
  std::lock_guard lock(mutex);
  return made[tiling];
}

ModuleOp TrainedModels::with(Tiling tiling) {
  Model &model = of(whole, tiling);
  std::lock_guard lock(model.making);
  if (model.isMade) return *model.module;
  bool isTrained = tiling == settings.tiling; // asked for by the search itself, before it has threads ahead of it
  model.module = isTrained ? std::move(trained) : OwningOpRef<ModuleOp>(imported->clone());
  model.notes.clear();
  std::optional<KeepNotes> later;
  if (!isTrained) later.emplace(model.notes); // whether they matter is not known yet
  model.isMade = prepare(*model.module, tiling, isTrained);
  if (options.progress) options.progress->pass = "choosing what fits --device-memory"; // no pass of its own announces itself there
  return model.isMade ? *model.module : ModuleOp();
}

ModuleOp TrainedModels::withFewLayers(Tiling tiling) {
  Model &model = of(few, tiling);
  std::lock_guard lock(model.making);
  if (model.isMade) return model.module ? *model.module : ModuleOp();
  model.isMade = true;
  Quiet quiet;
  std::call_once(fewLayersKept, [&] { fewImported = imported->clone(), hasFewLayers = keepFewLayers(*fewImported); });
  if (!hasFewLayers) return {};
  model.module = fewImported->clone();
  if (!prepare(*model.module, tiling, /*isTrained=*/false)) model.module = nullptr;
  return model.module ? *model.module : ModuleOp();
}

std::pair<OwningOpRef<ModuleOp>, std::vector<std::string>> TrainedModels::take(Tiling tiling) {
  Model &model = of(whole, tiling);
  return {std::move(model.module), std::move(model.notes)};
}

/// What is only tried is verified once, when it is chosen.
bool TrainedModels::prepare(ModuleOp module, Tiling tiling, bool isTrained) {
  Settings cut = settings;
  cut.tiling = tiling;
  auto add = [&](OpPassManager &pm) {
    if (!isTrained) addPhase(pm, Phase::Train, options, cut);
    addFusion(pm, options);
  };
  return runPasses(module, options, add, /*verifies=*/false);
}

} // namespace zero::pipeline

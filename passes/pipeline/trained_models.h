//===- trained_models.h - the model, trained with each tiling that the search asks for --------------------===//
#pragma once
#include "passes/pipeline/phases.h"
#include <map>
#include <mutex>

namespace zero::pipeline {

/// Any thread may ask; who asks for what another is making waits for it. Modules live as long as this.
class TrainedModels {
public:
  /// `trained`: as `settings` say. `imported`: as it was before it was trained, null where nothing else is asked for.
  TrainedModels(const CompileOptions &options, const Settings &settings, mlir::OwningOpRef<mlir::ModuleOp> trained,
                mlir::OwningOpRef<mlir::ModuleOp> imported)
      : options(options), settings(settings), trained(std::move(trained)), imported(std::move(imported)) {}

  /// With its kernels; null, with an error, if a pass fails. What fails while nobody listens (quiet.h) is made again by who does.
  mlir::ModuleOp with(Tiling tiling);
  /// The same of a model with a few of its layers (few_layers.h); null, without an error, if it has none or a pass fails, which is said
  /// when it does so of all layers.
  mlir::ModuleOp withFewLayers(Tiling tiling);

  /// The module, and notes of the passes that made it, which nobody has been told.
  std::pair<mlir::OwningOpRef<mlir::ModuleOp>, std::vector<std::string>> take(Tiling tiling);

private:
  struct Model {
    std::mutex making;
    bool isMade = false;
    mlir::OwningOpRef<mlir::ModuleOp> module;
    std::vector<std::string> notes;
  };
  Model &of(std::map<Tiling, Model> &made, Tiling tiling);
  bool prepare(mlir::ModuleOp module, Tiling tiling, bool isTrained);

  const CompileOptions &options;
  const Settings &settings;
  mlir::OwningOpRef<mlir::ModuleOp> trained, imported;
  mlir::OwningOpRef<mlir::ModuleOp> fewImported; // of that, a few layers
  bool hasFewLayers = false;
  std::once_flag fewLayersKept;
  std::mutex mutex; // of both
  std::map<Tiling, Model> whole, few;
};

} // namespace zero::pipeline

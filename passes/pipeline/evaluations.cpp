//===- evaluations.cpp - what choices need and take, found out once -----------------------------------===//
#include "passes/pipeline/evaluations.h"
#include "passes/pipeline/quiet.h"

using namespace mlir;

namespace zero::pipeline {

Evaluations::Entry &Evaluations::at(const Key &key) {
  std::lock_guard lock(mutex);
  return entries[key];
}

FailureOr<TriedOut> Evaluations::of(const Settings &settings, bool places) {
  Entry &entry = at(keyOf(settings, places));
  std::lock_guard lock(entry.making);
  if (entry.isMade) {
    TriedOut known{entry.trial, Quiet::here() ? OwningOpRef<ModuleOp>() : std::move(entry.kept), entry.steps};
    known.trial.settings = settings; // which may say more than what distinguishes choices
    return known;
  }
  ModuleOp fused = modules(settings.tiling);
  FailureOr<TriedOut> made = failure();
  if (fused && !ended) made = tryOut(fused, settings, question, places, &ended);
  if (failed(made)) return failure();
  entry.isMade = true;
  entry.trial = made->trial, entry.steps = made->steps;
  if (places && Quiet::here()) entry.kept = std::move(made->scheduled);
  return made;
}

void Evaluations::dropModules() {
  std::lock_guard lock(mutex);
  for (auto &[key, entry] : entries) {
    std::unique_lock making(entry.making, std::try_to_lock);
    if (making) entry.kept = {}; // else it is not made yet
  }
}

LogicalResult Evaluations::estimate(TriedOut &tried) {
  Entry &entry = at(keyOf(tried.trial.settings, /*places=*/false));
  std::lock_guard lock(entry.making);
  if (!entry.isTimed) {
    if (!tried.scheduled) {
      FailureOr<TriedOut> made = again(tried.trial.settings, /*places=*/false);
      if (failed(made)) return failure();
      tried = std::move(*made);
    }
    if (failed(estimateApart(tried, question.machine))) return failure();
    entry.isTimed = true, entry.time = tried.trial.time;
  }
  tried.trial.time = entry.time;
  return success();
}

} // namespace zero::pipeline

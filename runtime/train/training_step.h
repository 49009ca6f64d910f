// One update of all parameters: samples in, the programs of its micro-steps, and what came of it.
#pragma once
#include "runtime/checkpoint/export.h"
#include "runtime/engine/engine.h"
#include "runtime/report/record.h"
#include "runtime/train/setup.h"
#include <memory>
#include <string>

namespace zero::runtime {

class TrainingStep {
public:
  TrainingStep(const TrainOptions &options, const Setup &setup, Engine &engine, const Rank &rank);

  // Collective, before the first: the next step's gradients go to this file.
  void recordGradients(const std::string &path);
  // Removes what is half written of them, for a process that ends without destructors.
  void dropGradients() { gradients.reset(); }

  // Makes the step that follows `at`, and moves that behind it.
  StepRecord run(Progress &at);

private:
  void writeHyper(uint64_t step, double lr);

  const TrainOptions &options;
  const Setup &setup;
  const plan::Plan &plan;
  Engine &engine;
  const Rank &rank;
  Inputs inputs;
  std::unique_ptr<GradientFile> gradients;
};

} // namespace zero::runtime

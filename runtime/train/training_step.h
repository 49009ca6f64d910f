// One update of all parameters after another: samples in, the programs of its micro-steps, and what came of it. A step is begun before the
// one before it is looked at, unless the host needs the state between them.
#pragma once
#include "runtime/base/error.h"
#include "runtime/checkpoint/export.h"
#include "runtime/engine/engine.h"
#include "runtime/report/record.h"
#include "runtime/train/runs.h"
#include "runtime/train/setup.h"
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace zero::runtime {

// A sample that the model cannot take. The steps before the one that reads it are complete.
class BadSample : public Error {
public:
  using Error::Error;
};

class TrainingStep {
public:
  // Steps follow `at`, whose seed counts; it must be set before the first run().
  TrainingStep(const TrainOptions &options, const Setup &setup, Runs &runs, Engine &engine, const Rank &rank);
  ~TrainingStep() { runs.abandon(); } // they may show it gradients

  // Collective, before the first: the gradients of the step that follows `at` go to this file.
  void recordGradients(const std::string &path, const Progress &at);
  // Removes what is half written of them, for a process that ends without destructors.
  void dropGradients() { gradients.reset(); }

  // Completes the step that follows `at`, and moves that after it. Of later ones, those before step number `until` may be begun, unless
  // what came of this one decides their inputs.
  StepRecord run(Progress &at, uint64_t until);
  // Whether the next step cannot be left out any more.
  bool ahead() const;
  // Waits for what was begun of a step that is left out: it has changed no parameter.
  void drain();

private:
  void submit(const Progress &at);
  void feed(const Progress &at, const Hyper &hyper);
  bool isLast(size_t micro) const { return micro + 1 == setup.programs.micros.size(); }

  const TrainOptions &options;
  const Setup &setup;
  const plan::Plan &plan;
  Runs &runs;
  Engine &engine;
  const Rank &rank;
  std::unique_ptr<GradientFile> gradients;
  UpdateHook addGradient; // what the first step's updates are shown to, if `gradients`

  // What is submitted next: micro-step `micro` of step `step`, whose samples begin at `position`.
  std::optional<uint64_t> first; // step of this process
  uint64_t step = 0, position = 0;
  size_t micro = 0;
  LossScales scales{};
  std::exception_ptr failure; // why that cannot be submitted: said when its turn has come
  Clock::time_point ended;    // the last step
};

} // namespace zero::runtime

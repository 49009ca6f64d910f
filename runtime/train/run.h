// One run on this rank, from first values to last results, once its setup is complete.
#pragma once
#include "runtime/engine/engine.h"
#include "runtime/report/metrics.h"
#include "runtime/report/progress.h"
#include "runtime/train/checkpoints.h"
#include "runtime/train/setup.h"
#include "runtime/train/trace_file.h"
#include "runtime/train/training_step.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zero::runtime {

class Run {
public:
  // Collective: makes the memory of the plan and fills it, from a checkpoint or with first values. The arguments outlive it.
  Run(const TrainOptions &options, Setup &setup, Device &device, CommunicatorFactory &factory, Communicator &communicator);

  // Collective. Returns the exit status (0, or 128 + the signal that stopped it).
  int train();

  // Before the process ends without its destructors: what is half written is removed.
  void giveUp() { trainingStep.dropGradients(); }

private:
  // A step's outcome that all ranks agree on: a signal, one of these above every signal, or 0 to go on.
  static constexpr int kDiverged = 255, kUnwritten = 254, kBadSample = 253;

  void start(int threads);
  int makeSteps();
  int finish(int stop);
  void announce();
  void announceData();
  void announceDisk();
  void sayTraffic();
  int vote() const;
  int sampleVote(uint64_t step);
  int agreed(int vote);
  bool evaluates(uint64_t step) const;
  bool saves(uint64_t step) const;
  uint64_t nextPause() const;
  std::optional<double> evaluateNow();
  void report(const StepRecord &record);
  void say(const std::string &sentence);
  [[noreturn]] void endUnwritten(const std::string &where);
  [[noreturn]] void endAtSample(const std::string &why);
  [[noreturn]] void endDiverged(const std::string &why);

  const TrainOptions &options;
  Setup &setup;
  const plan::Plan &plan;
  Device &device;
  Engine engine;
  Rank rank;
  bool leads; // rank 0, which reports for all
  Progress at;
  uint64_t begun = 0;           // the step that this run began at
  uint64_t saved = UINT64_MAX;  // the step of the last checkpoint it has written; none yet
  bool lacksEvaluation = false; // of the last step
  FrozenSums frozen;            // of the model's values
  Runs runs;
  TrainingStep trainingStep;
  std::optional<Checkpoints> checkpoints;
  std::vector<std::string> changed; // sentences about what is not as in the run that is resumed
  std::unique_ptr<Metrics> metrics;
  std::string badSample; // of this rank, once it has met one ahead
  std::string unwritten; // why metrics cannot be written, once they cannot
  std::unique_ptr<ProgressLine> line;
  TraceFile trace;
};

} // namespace zero::runtime

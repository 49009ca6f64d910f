// What a user asked of zerorun. A value left out is chosen by the training loop, which knows the plan.
#pragma once
#include "runtime/data/dataset.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zero::runtime {

enum class Schedule { Constant, Cosine, Linear };

struct TrainOptions {
  std::string plan;
  std::optional<std::string> requireSignature; // file of the public key that must have signed the plan
  std::optional<std::string> data;
  DataOptions reading; // of --data and --eval-data
  bool showBatch = false, shuffle = false;
  std::optional<uint64_t> steps; // of the whole run, a resumed one included
  // Optimizer
  double lr = 1e-3;
  Schedule schedule = Schedule::Constant;
  uint64_t warmup = 0;
  std::optional<double> weightDecay, eps, clip;
  std::optional<uint64_t> lossScale;                    // that the run begins with, a power of two; 0: auto
  std::vector<double> betas;                            // as given: none, one (SGD's momentum) or two
  std::vector<std::string> noDecay;                     // regular expressions for names of parameters
  std::vector<std::pair<std::string, double>> lrScales; // the same, and what their learning rate is multiplied by
  std::optional<uint64_t> seed;
  bool drain = false;    // every step is complete before the next begins
  bool noGraphs = false; // a GPU's steps are launched one by one
  bool tune = false;     // measures the plan's products instead of training
  // Results
  std::optional<std::string> metrics, gradients, checkpoint, resume, exportTo, trace;
  bool onlyTrained = false; // of the export
  std::optional<uint64_t> every, keep;
  // Evaluation
  std::optional<std::string> evalData;
  std::optional<uint64_t> evalEvery;
  std::vector<std::string> diskPaths; // folders for what the plan keeps on disk
  int threads = 0;                    // 0: as many as this process may use
  uint64_t timeout = 1800;            // seconds without progress after which a collective ends the run; 0: never
};

} // namespace zero::runtime

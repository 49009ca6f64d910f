// Everything a run can know before the first byte of an arena is allocated, checked.
#pragma once
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/lock.h"
#include "runtime/data/dataset.h"
#include "runtime/data/feeder.h"
#include "runtime/device/devices.h"
#include "runtime/plan/container.h"
#include "runtime/train/groups.h"
#include "runtime/train/options.h"
#include "runtime/train/programs.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zero::runtime {

struct Setup {
  plan::PlanFile file;                // without the steps of programs that are not used
  const DeviceKind *device = nullptr; // that runs it
  MeasuredTable measured;             // beside the plan, if the device has one
  std::vector<std::string> diskFolders;
  Hyper hyper{};
  HyperGroups groups;
  Programs programs;
  uint64_t steps = 0;
  std::unique_ptr<Dataset> data, evalData;
  std::optional<Feeder> feeder, evalFeeder;
  std::string warning;                    // about the labels; empty if nothing is suspicious
  std::unique_ptr<DirectoryLock> lock;    // of --checkpoint; rank 0's
  std::vector<std::string> candidates;    // checkpoints to go on from, newest first; none: the run starts at its beginning
  std::optional<std::string> resumedFrom; // the one of them that was whole
  std::vector<std::string> damaged;       // those of them that were not

  Setup() = default;
  Setup(const Setup &) = delete; // feeders point into it
};

// Throws a sentence for the first thing that does not fit.
void prepare(const TrainOptions &options, int world, Setup &setup);

// The folders for what the plan keeps on disk: those of --disk-path, or else the plan's own.
std::vector<std::string> diskFolders(const TrainOptions &options, const plan::Plan &plan);

// On rank 0, after prepare(): throws a sentence if a result cannot be written where it shall appear. Each is begun and removed again:
// there is no other way to know. Of checkpoints one, if `steps` are to be made.
void tryResults(const TrainOptions &options, const plan::Plan &plan, uint64_t steps);

} // namespace zero::runtime

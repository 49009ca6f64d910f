// Everything a run can know before the first byte of an arena is allocated, checked.
#pragma once
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/dataset.h"
#include "runtime/data/feeder.h"
#include "runtime/device/devices.h"
#include "runtime/plan/container.h"
#include "runtime/train/hyper.h"
#include "runtime/train/options.h"
#include "runtime/train/programs.h"
#include <memory>
#include <optional>

namespace zero::runtime {

struct Setup {
  plan::PlanFile file;
  const DeviceKind *device = nullptr; // that runs it
  Hyper hyper{};
  Programs programs;
  uint64_t steps = 0;
  std::unique_ptr<Dataset> data, evalData;
  std::optional<Feeder> feeder, evalFeeder;
  std::optional<std::string> resumeFrom; // a whole checkpoint
  std::optional<std::string> replaces;   // checkpoint that the next one of this run replaces

  Setup() = default;
  Setup(const Setup &) = delete; // feeders point into it
};

// Throws a sentence for the first thing that does not fit.
void prepare(const TrainOptions &options, int world, Setup &setup);

} // namespace zero::runtime

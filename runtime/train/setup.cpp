#include "runtime/train/setup.h"
#include "runtime/checkpoint/export.h"
#include "runtime/checkpoint/files.h"
#include "runtime/plan/error.h"
#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

void checkFlags(const TrainOptions &options) {
  if (!options.steps && (options.data || (!options.resume && !options.exportTo)))
    throw Error("--steps N is missing: how many updates the whole run makes");
  uint64_t steps = options.steps.value_or(0);
  if (steps > 0 && !options.data)
    throw Error("--data FILE is missing: training needs samples (.safetensors, .npz, .bin, .u32.bin or .txt)");
  if (options.warmup > steps && options.warmup > 0)
    throw Error(fmt::format("--warmup {} is longer than the run of {} steps", options.warmup, steps));
  if (options.every && !options.checkpoint) throw Error("--every N needs --checkpoint DIR: it says how often to write one");
  if (options.every && *options.every == 0) throw Error("--every must be at least 1");
  if (options.evalEvery && !options.evalData) throw Error("--eval-every N needs --eval-data FILE: it says how often to evaluate on it");
  if (options.evalEvery && *options.evalEvery == 0) throw Error("--eval-every must be at least 1");
  if (options.gradients && steps == 0) throw Error("--gradients shows the first step's gradients, but no step is asked for");
  if (options.gradients && !options.gradients->ends_with(".safetensors"))
    throw Error(fmt::format("--gradients '{}' must end in .safetensors", *options.gradients));
  if (options.threads < 0) throw Error("--threads must be at least 1");
}

void checkWritable(const char *flag, const std::optional<std::string> &path) {
  if (path && !fs::is_directory(parentOf(*path)))
    throw Error(fmt::format("{} '{}': the folder '{}' does not exist", flag, *path, parentOf(*path)));
}

void chooseCheckpoints(const TrainOptions &options, Setup &setup) {
  if (options.resume) setup.resumeFrom = findCheckpoint(*options.resume);
  if (!options.checkpoint) return;
  // A newer checkpoint of another run would be what --resume finds afterwards, so it must not lie in the same folder.
  std::vector<std::string> present = wholeCheckpoints(*options.checkpoint);
  if (present.empty()) return;
  std::error_code different;
  if (!setup.resumeFrom || !fs::equivalent(present.back(), *setup.resumeFrom, different))
    throw Error(fmt::format("--checkpoint '{}' already holds {} of another run; resume it, or name another folder", *options.checkpoint,
                            fs::path(present.back()).filename().string()));
  setup.replaces = present.back();
}

} // namespace

void prepare(const TrainOptions &options, int world, Setup &setup) {
  checkFlags(options);
  setup.file = plan::load(options.plan);
  const plan::Plan &plan = setup.file.plan;
  if (plan.world() != static_cast<uint32_t>(world))
    throw Error(fmt::format("'{}' was compiled for {} rank{}, but {} {} running; start it with mpirun -np {}, or compile with --world {}",
                            options.plan, plan.world(), plan.world() == 1 ? "" : "s", world, world == 1 ? "is" : "are", plan.world(),
                            world));
  if (plan.target().kind() != plan::Target::CPU)
    throw Error(fmt::format("'{}' was compiled for {}, and this zerorun runs plans for the cpu only; compile with --target cpu",
                            options.plan, plan.target().kind() == plan::Target::SIM ? "simulation" : "cuda"));
  setup.steps = options.steps.value_or(0);
  setup.hyper = resolveHyper(plan, options);
  setup.programs = choosePrograms(plan, setup.steps > 0, setup.hyper.clip > 0, options.evalData.has_value());
  chooseCheckpoints(options, setup);
  if (options.exportTo) checkExport(plan, *options.exportTo);
  checkWritable("--export", options.exportTo);
  checkWritable("--gradients", options.gradients);
  checkWritable("--metrics", options.metrics);
  checkWritable("--trace", options.trace);
  if (setup.steps > 0) {
    setup.data = openDataset(plan, *options.data);
    setup.feeder.emplace(plan, *setup.data, plan.accumulate(), "--data");
  }
  if (options.evalData) {
    setup.evalData = openDataset(plan, *options.evalData);
    setup.evalFeeder.emplace(plan, *setup.evalData, 1, "--eval-data");
  }
}

} // namespace zero::runtime

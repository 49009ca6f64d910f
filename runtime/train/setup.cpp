#include "runtime/train/setup.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/export.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/engine/engine.h"
#include "runtime/files/distinct.h"
#include "runtime/files/partial_file.h"
#include "runtime/plan/model_files.h"
#include "runtime/plan/paths.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/tune.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

void checkFlags(const TrainOptions &options) {
  if (!options.steps && (options.data || (!options.resume && !options.exportTo)))
    throw Error("--steps N is missing: how many updates the whole run makes");
  uint64_t steps = options.steps.value_or(0);
  if (steps > 0 && !options.data)
    throw Error("--data FILE is missing: training needs samples (.safetensors, .npz, .bin, .u32.bin or .txt)");
  if (options.showBatch && !options.data) throw Error("--show-batch shows a sample of --data, which is missing");
  if (options.warmup > steps && options.warmup > 0)
    throw Error(fmt::format("--warmup {} is longer than the run of {} steps", options.warmup, steps));
  if (options.every && !options.checkpoint) throw Error("--every N needs --checkpoint DIR: it says how often to write one");
  if (options.every && *options.every == 0) throw Error("--every must be at least 1");
  if (options.keep && !options.checkpoint) throw Error("--keep N needs --checkpoint DIR: it says how many of them stay");
  if (options.keep && *options.keep == 0) throw Error("--keep must be at least 1");
  if (options.evalEvery && !options.evalData) throw Error("--eval-every N needs --eval-data FILE: it says how often to evaluate on it");
  if (options.evalEvery && *options.evalEvery == 0) throw Error("--eval-every must be at least 1");
  if (options.onlyTrained && !options.exportTo)
    throw Error("--only-trained needs --export FILE.safetensors: it leaves out of it what is frozen");
  if (options.gradients && steps == 0) throw Error("--gradients shows the first step's gradients, but no step is asked for");
  if (options.gradients && !options.gradients->ends_with(".safetensors"))
    throw Error(fmt::format("--gradients '{}' must end in .safetensors", *options.gradients));
  if (options.threads < 0) throw Error("--threads must be at least 1");
}

Exported exported(const TrainOptions &options) { return options.onlyTrained ? Exported::Trained : Exported::All; }

// Lines are appended to a file, and a pipe or a device will do; what is written whole replaces what was there.
enum class Written { Whole, ByLine };

void checkWritable(const char *flag, const std::optional<std::string> &path, Written how) {
  if (!path) return;
  if (kindOf(parentOf(*path)) != fs::file_type::directory)
    throw Error(fmt::format("{} '{}': the folder '{}' does not exist", flag, *path, parentOf(*path)));
  if (kindOf(*path) == fs::file_type::directory) throw Error(fmt::format("{} '{}' is a folder, but a file is to be written", flag, *path));
  if (how == Written::ByLine && isThere(*path)) {
    if (::access(path->c_str(), W_OK) != 0) throw Error(fmt::format("{} '{}' cannot be written: {}", flag, *path, std::strerror(errno)));
    return;
  }
  std::string folder = parentOf(how == Written::Whole ? plan::replaceable(*path) : *path);
  if (::access(folder.c_str(), W_OK) != 0)
    throw Error(fmt::format("{} '{}': the folder '{}' cannot be written: {}", flag, *path, folder, std::strerror(errno)));
}

// A result must not replace what the run reads, nor another result.
void checkResults(const TrainOptions &options, const plan::Plan &plan) {
  std::vector<NamedFile> files;
  auto add = [&](const char *flag, const std::optional<std::string> &path, bool written) {
    if (path) files.push_back({flag, *path, written});
  };
  add("the plan", options.plan, false);
  for (const std::string &file : plan::ModelFiles(plan).names())
    add(file == plan.model() ? "the model" : "the model's weights", file, false);
  for (const std::string &file : dataFilesOf(plan.model())) add("the model's data", file, false); // of constants alone, too
  add("--data", options.data, false);
  add("--eval-data", options.evalData, false);
  add("--metrics", options.metrics, true);
  add("--gradients", options.gradients, true);
  if (options.exportTo)
    for (const ExportedFile &file : exportedFiles(plan, *options.exportTo, exported(options)))
      add(file.path == *options.exportTo ? "--export" : "a data file of --export", file.path, true);
  add("--trace", options.trace, true);
  requireDistinct(files);
}

// Begins files and removes them again, with the folders that they needed. All at once and as long as they will be, where that is known: a
// full disk is better found now than after the last step.
void tryWriting(const char *flag, const std::vector<ExportedFile> &files) {
  std::vector<std::string> made;
  std::vector<std::unique_ptr<PartialFile>> begun;
  std::string sentence;
  for (const ExportedFile &file : files) try {
      std::vector<std::string> folders = makeFolders(parentOf(file.path));
      made.insert(made.begin(), folders.begin(), folders.end());
      begun.push_back(std::make_unique<PartialFile>(plan::replaceable(file.path)));
      begun.back()->file().reserve(file.bytes);
    } catch (const Error &error) {
      sentence = fmt::format("{} '{}' could not be written: {}", flag, file.path, error.what());
      break;
    }
  begun.clear();
  std::error_code ignored;
  for (const std::string &folder : made) fs::remove(folder, ignored);
  if (!sentence.empty()) throw Error(sentence);
}

// A misspelt name would let through what it was to name.
void checkIgnored(const TrainOptions &options, const Setup &setup) {
  for (const std::string &name : options.reading.ignored)
    if (!(setup.data && setup.data->holds(name)) && !(setup.evalData && setup.evalData->holds(name)))
      throw Error(fmt::format("--ignore-tensor '{}': no data file of this run holds a tensor of this name", name));
}

// Steps of programs that this run does not submit are most of a large plan's message: what the engine allocates takes their place.
void dropUnused(Setup &setup) {
  std::vector<uint32_t> used = setup.programs.used();
  if (used.empty()) return; // the engine takes all
  for (int i = 0; i < setup.file.plan.programs_size(); ++i)
    if (!std::ranges::binary_search(used, static_cast<uint32_t>(i)))
      google::protobuf::RepeatedPtrField<plan::Step>().Swap(setup.file.plan.mutable_programs(i)->mutable_steps());
}

} // namespace

void prepare(const TrainOptions &options, int world, Setup &setup) {
  checkFlags(options);
  std::optional<plan::PublicKey> required;
  if (options.requireSignature) required = plan::readPublicKey(*options.requireSignature);
  setup.file = plan::load(options.plan, required ? &*required : nullptr);
  const plan::Plan &plan = setup.file.plan;
  requireWorld(setup.file, world);
  setup.device = &deviceFor(plan.target(), options.plan);
  requireCode(setup.file);
  if (setup.device->tune) setup.measured = tableBeside(options.plan);
  setup.steps = options.steps.value_or(0);
  setup.hyper = resolveHyper(plan, options);
  checkLossScale(plan, options);
  setup.groups = resolveGroups(plan, options, setup.hyper);
  setup.programs = choosePrograms(plan, setup.steps > 0, setup.hyper.clip > 0 && !plan.scales_loss(), options.evalData.has_value());
  if (options.exportTo) checkExport(plan, *options.exportTo, exported(options));
  checkWritable("--export", options.exportTo, Written::Whole);
  checkWritable("--gradients", options.gradients, Written::Whole);
  checkWritable("--trace", options.trace, Written::Whole);
  checkResults(options, plan);
  if (setup.steps > 0 || options.showBatch) {
    setup.data = openDataset(plan, *options.data, options.reading);
    setup.feeder.emplace(plan, *setup.data, plan.accumulate(), "--data");
    setup.warning = labelWarning(plan, *setup.data, options.reading.labels);
  }
  if (options.evalData) {
    setup.evalData = openDataset(plan, *options.evalData, options.reading);
    setup.evalFeeder.emplace(plan, *setup.evalData, 1, "--eval-data");
    if (setup.steps > 0) setup.evalFeeder->checkValues(); // read after the last step, a bad one would cost all of them
  }
  checkIgnored(options, setup);
  dropUnused(setup);
}

std::vector<std::string> diskFolders(const TrainOptions &options, const plan::Plan &plan) {
  bool needed = std::any_of(plan.arenas().begin(), plan.arenas().end(),
                            [](const plan::Arena &arena) { return arena.tier() == plan::DISK && arena.bytes() > 0; });
  if (!needed || !options.diskPaths.empty()) return options.diskPaths;
  std::string folder = std::filesystem::path(options.plan).parent_path().string();
  return {folder.empty() ? "." : folder};
}

void tryResults(const TrainOptions &options, const plan::Plan &plan, uint64_t steps) {
  checkWritable("--metrics", options.metrics, Written::ByLine);
  if (options.exportTo) tryWriting("--export", exportedFiles(plan, *options.exportTo, exported(options)));
  if (options.gradients) tryWriting("--gradients", {{*options.gradients}});
  if (options.trace) tryWriting("--trace", {{*options.trace}});
  // The first, or one beside those that stay: that there is no room would else show when the steps are done. By a name of which what is
  // left behind is removed (removeLeftovers).
  if (options.checkpoint && steps > 0)
    tryWriting("--checkpoint", {{(fs::path(*options.checkpoint) / "step-0").string(), checkpointBytes(plan)}});
}

} // namespace zero::runtime

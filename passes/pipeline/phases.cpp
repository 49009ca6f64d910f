//===- phases.cpp - the passes of each phase, and what flags say to them --------------------------------===//
#include "passes/pipeline/phases.h"
#include "compiler/codegen/ptx/ptx.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "passes/fuse/Passes.h"
#include "passes/place/Passes.h"
#include "passes/raise/Passes.h"
#include "passes/train/Passes.h"

using namespace mlir;

namespace zero::pipeline {

namespace {

/// Says which pass runs.
struct Announce : PassInstrumentation {
  explicit Announce(Progress &progress) : progress(progress) {}
  void runBeforePass(Pass *pass, Operation *) override { progress.pass = pass->getArgument().data(); }
  Progress &progress;
};

} // namespace

static constexpr const char *kPhases[] = {"import", "train", "shard", "schedule", "place", "plan"};

const char *nameOf(Phase phase) { return kPhases[int(phase)]; }

bool runPasses(ModuleOp module, const CompileOptions &options, llvm::function_ref<void(OpPassManager &)> add, bool verifies) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(verifies);
  if (options.progress) pm.addInstrumentation(std::make_unique<Announce>(*options.progress));
  add(pm);
  return succeeded(pm.run(module));
}

static bool epilogues(const CompileOptions &options) { return options.epilogues && options.target == plan::Target::CUDA; }

void addFusion(OpPassManager &pm, const CompileOptions &options) {
  bool cuda = options.target == plan::Target::CUDA;
  fuse::buildPipeline(pm, {.precision = options.precision,
                           .gradients = options.world > 1 ? options.reduceType : "f32",
                           .epilogues = epilogues(options),
                           .blocks = !cuda,
                           .world = options.world,
                           .rowsApart = !cuda,
                           .manyThreads = cuda});
}

/// Elements in 16 bytes, of what a GPU's matrix units multiply.
static int64_t classMultiple(const CompileOptions &options) {
  if (options.target != plan::Target::CUDA) return 1;
  return options.precision != "f32" ? 8 : options.tf32 ? 4 : 1;
}

/// Whether backward computes cheap values again. A kernel of a GPU takes as long as its bytes: to read two tensors for a third takes longer
/// than reading that, and where memory is short kernels are made again instead (nn-rematerialize), with the bits they had.
static bool recomputesCheap(const CompileOptions &options) { return options.recompute != "none" && options.target != plan::Target::CUDA; }

void addPhase(OpPassManager &pm, Phase phase, const CompileOptions &options, const Settings &settings) {
  switch (phase) {
  case Phase::Import: // bring decomposed exports back to what they mean
    raise::buildPipeline(pm, /*kernels=*/options.target == plan::Target::CUDA);
    return;
  case Phase::Train: // loss, backward; then everything in primitives
    train::buildPipeline(pm, {options.losses, -100, options.labelSmoothing, recomputesCheap(options) ? "auto" : "none",
                              settings.tiling.parts, settings.tiling.tokens, settings.tiling.keepLogits, classMultiple(options),
                              epilogues(options) && options.precision != "f32"});
    return;
  case Phase::Shard: // kernels first: sharding moves what kernels read and write
    addFusion(pm, options);
    addSharding(pm, settings);
    return;
  case Phase::Schedule:
    schedule::buildPipeline(pm, settings.schedule);
    return;
  case Phase::Place:
    place::buildPipeline(pm);
    return;
  case Phase::Plan:
    return;
  }
}

static double productsOf(const CompileOptions &options) {
  const simulate::Machine &machine = options.machine;
  return options.precision == "f32" ? options.tf32 ? machine.productsTf32 : machine.productsF32 : machine.productsBf16;
}

/// Multiply-adds while a byte is written to disk, which has other things to do as well.
static int64_t workBesideWrites(const CompileOptions &options) {
  constexpr double kTimes = 1.5; // GPT-2 124M under 1 GiB: the same plan from 0.5 to 2
  return std::max<int64_t>(1, int64_t(kTimes * productsOf(options) / options.machine.diskWrite));
}

/// Multiply-adds during which a byte must wait to be worth copying: several times as many as are done while it leaves and comes back.
static int64_t workBesideCopies(const CompileOptions &options) {
  constexpr double kTimes = 4; // lanes have other copies too
  const simulate::Machine &machine = options.machine;
  double seconds = options.budgets.host ? 1 / machine.toHost + 1 / machine.toDevice : 1 / machine.diskWrite + 1 / machine.diskRead;
  return std::max<int64_t>(1, int64_t(kTimes * productsOf(options) * seconds));
}

/// Whether masters may be fetched for each use in place of compute copies: the update finds what backward has fetched if it need not wait
/// for the norm.
static bool fetchesMasters(const CompileOptions &options) {
  return options.precision == "bf16" && options.clip == "never" && options.target != plan::Target::CUDA;
}

Settings settingsOf(const CompileOptions &options) {
  Settings settings;
  settings.tiling.parts = options.tileParts.value_or(1);
  settings.tiling.tokens = options.tileTokens.value_or(0);
  // Where a budget is kept, to begin with. A sum of gradients, over micro-steps or tiles of tokens, is there all the while: nothing can
  // wait in its place.
  settings.tiling.keepLogits = options.budgets.device && options.accumulate == 1 && settings.tiling.tokens == 0;
  if (options.recompute == "full") settings.keepBytes = 0;
  settings.writeWork = workBesideWrites(options);
  // It spares a read and takes room for longer. Steps that clip update after all of backward, and would lose the room for nothing.
  settings.schedule.keepShards = options.prefetch && (!options.budgets.device || options.clip == "never");
  settings.schedule.librarySums = options.target == plan::Target::CUDA;
  settings.schedule.tf32 = options.tf32;
  if (options.prefetch) settings.shard.merges.distance = mergeDistance(settings.tiling);
  if (!options.prefetch) settings.schedule.ahead = settings.schedule.fetchAhead = settings.schedule.delay = 0;
  settings.attentionKernels = options.target == plan::Target::CUDA;
  settings.warpgroups = settings.attentionKernels && codegen::GpuTarget{options.gpu}.warpgroups();
  shard::PartitionPassOptions &partition = settings.shard.partition;
  partition.world = options.world;
  partition.stage = options.stage.value_or(0);
  partition.accumulate = options.accumulate;
  partition.vertical = options.accumulateOrder == "vertical" && options.accumulate > 1;
  partition.optimizer = options.optimizer;
  partition.bucketElements = options.bucketElements;
  partition.manyThreads = options.target == plan::Target::CUDA;
  settings.shard.programs.clip = options.clip;
  settings.shard.tiers.offloadParams = options.offloadParams;
  settings.shard.tiers.offloadOptimizer = options.offloadOptimizer;
  // Nobody asked to save memory, and a GPU's steps are short: rounding masters in each micro-step is 3 % of one of GPT-2 124M.
  settings.shard.tiers.keepCompute = options.target == plan::Target::CUDA && !options.budgets.device;
  settings.shard.tiers.hostUpdates = options.target == plan::Target::CUDA;
  settings.shard.tiers.diskUpdates = settings.shard.tiers.hostUpdates && (!options.budgets.device || options.budgets.host);
  settings.schedule.activations = options.offloadActivations == "auto" && !options.budgets.device ? "none" : options.offloadActivations;
  if (settings.tiling.keepLogits) settings.schedule.activationWork = workBesideCopies(options);
  return settings;
}

Question questionOf(const CompileOptions &options, int64_t tokens) {
  return {settingsOf(options),
          !options.stage,
          !options.tileParts,
          !options.tileTokens,
          options.recompute == "auto",
          options.accumulateOrder == "auto" && options.accumulate > 1 && options.accumulate <= kMostVertical,
          fetchesMasters(options),
          tokens,
          options.budgets,
          options.machine};
}

std::optional<Phase> phaseFromName(StringRef name) {
  for (size_t i = 0; i < std::size(kPhases); ++i)
    if (name == kPhases[i]) return Phase(i);
  return std::nullopt;
}

std::string phaseNames() {
  std::string names;
  for (const char *name : kPhases) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

std::string describePipeline(const CompileOptions &options) {
  MLIRContext context;
  std::string text;
  llvm::raw_string_ostream os(text);
  for (Phase phase : {Phase::Import, Phase::Train, Phase::Shard, Phase::Schedule, Phase::Place}) {
    PassManager pm(&context, ModuleOp::getOperationName());
    addPhase(pm, phase, options, settingsOf(options));
    os << kPhases[int(phase)] << ": ";
    pm.printAsTextualPipeline(os);
    os << "\n";
  }
  return text;
}

} // namespace zero::pipeline

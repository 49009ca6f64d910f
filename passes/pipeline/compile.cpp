//===- compile.cpp - phase after phase ---------------------------------------------------------------===//
#include "passes/pipeline/compile.h"
#include "compiler/codegen/codegen.h"
#include "compiler/nn/Nn.h"
#include "compiler/plan/Plan.h"
#include "compiler/plan/export.h"
#include "compiler/zero/Zero.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "passes/fuse/Passes.h"
#include "passes/pipeline/budget.h"
#include "passes/place/Passes.h"
#include "passes/raise/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/shard/Passes.h"
#include "passes/train/Passes.h"
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include "runtime/judge/judge.h"
#include "runtime/plan/container.h"
#include "runtime/plan/error.h"
#include "runtime/plan/model_files.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>

using namespace mlir;

namespace zero::pipeline {
namespace {

constexpr const char *kPhases[] = {"import", "train", "shard", "schedule", "place", "plan"};

/// The passes of one phase. Each phase ends with a pass that checks what the next relies on.
void addPhase(OpPassManager &pm, Phase phase, const CompileOptions &options, const schedule::Options &schedule = {}) {
  switch (phase) {
  case Phase::Import: // bring decomposed exports back to what they mean
    raise::buildPipeline(pm);
    return;
  case Phase::Train: // loss, backward; then everything in primitives
    train::buildPipeline(pm, {options.losses, -100, options.labelSmoothing, options.recompute});
    return;
  case Phase::Shard: { // kernels first: sharding moves what kernels read and write
    fuse::buildPipeline(pm, options.half);
    shard::PartitionPassOptions partition;
    partition.world = options.world;
    partition.stage = options.stage;
    partition.accumulate = options.accumulate;
    partition.optimizer = options.optimizer;
    partition.offloadParams = options.offloadParams;
    partition.offloadOptimizer = options.offloadOptimizer;
    partition.bucketElements = options.bucketElements;
    shard::buildPipeline(pm, partition);
    return;
  }
  case Phase::Schedule: {
    schedule::Options chosen = schedule;
    chosen.activations = options.offloadActivations;
    schedule::buildPipeline(pm, chosen);
    return;
  }
  case Phase::Place:
    place::buildPipeline(pm);
    return;
  case Phase::Plan:
    return;
  }
}

/// Says which pass runs.
struct Announce : PassInstrumentation {
  explicit Announce(Progress &progress) : progress(progress) {}
  void runBeforePass(Pass *pass, Operation *) override { progress.pass = pass->getArgument().data(); }
  Progress &progress;
};

/// The node of the model that most operations of the module came from; null if none did.
const char *heaviestNode(ModuleOp module) {
  llvm::DenseMap<mlir::Attribute, unsigned> operations;
  std::pair<unsigned, StringAttr> most{0, {}};
  module.walk([&](Operation *op) {
    auto node = dyn_cast<NameLoc>(op->getLoc());
    if (!node || !isa_and_nonnull<nn::NnDialect>(op->getDialect())) return;
    unsigned count = ++operations[node.getName()];
    if (count > most.first) most = {count, node.getName()};
  });
  return most.second ? most.second.data() : nullptr;
}

class Compilation {
public:
  Compilation(const CompileOptions &options, const Say &say, CompileReport &report)
      : options(options), say(say), report(report), handler(&context, [this](Diagnostic &d) { return forward(d); }) {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, nn::NnDialect, state::ZeroDialect, planir::PlanDialect>();
    codegen::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false); // a location names the node; the operation itself can be as long as the model
    context.disableMultithreading();    // module passes gain nothing from threads, and one order of work gives one plan
  }
  ~Compilation() { // the names are the context's
    if (options.progress) options.progress->node = options.progress->reading.node = options.progress->pass = nullptr;
  }

  bool run(std::optional<Phase> emit, llvm::raw_ostream &os, const std::string &output, plan::Plan &plan) {
    std::optional<plan::SigningKey> key; // before anything that takes time
    if (!options.signWith.empty()) key.emplace(options.signWith);
    if (!timed("read", [&] { return read(); })) return false;
    for (Phase phase : {Phase::Import, Phase::Train, Phase::Shard, Phase::Schedule, Phase::Place}) {
      if (!timed(kPhases[int(phase)], [&] { return lower(phase); })) return false;
      if (emit == phase) return print(os);
    }
    std::vector<char> constants;
    llvm::SmallVector<char, 0> kernels;
    if (!timed("export", [&] { return exportPlan(plan, constants); }) || !timed("judge", [&] { return judge(plan); })) return false;
    if (emit == Phase::Plan) {
      os << inspect::firstPage(plan) << "\n" << inspect::scheduleText(plan, true);
      return true;
    }
    if (!overwritesNoInput(plan, output)) return false;
    if (options.kernels && !timed("kernels", [&] { return generate(plan, kernels); })) return false;
    return timed("write", [&] {
      if (options.progress) options.progress->writing = true;
      plan::save(output, plan, std::as_bytes(std::span(kernels.data(), kernels.size())), std::as_bytes(std::span(constants)),
                 key ? &*key : nullptr);
      return true;
    });
  }

private:
  template <typename Work> bool timed(const char *what, Work work) {
    auto start = std::chrono::steady_clock::now();
    if (options.progress) {
      options.progress->pass = nullptr;
      options.progress->phase = what;
    }
    bool good = work();
    report.seconds.push_back({what, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    return good;
  }

  LogicalResult forward(Diagnostic &d) {
    static constexpr const char *severities[] = {"note", "warning", "error", "remark"};
    std::string node = planir::nameOf(d.getLocation()), text = d.str();
    if (!node.empty() && node != options.model && text.find(node) == std::string::npos) text = "node '" + node + "': " + text;
    for (Diagnostic &note : d.getNotes()) text += "; " + note.str();
    std::replace(text.begin(), text.end(), '\n', ' ');
    say(severities[int(d.getSeverity())], text);
    return success();
  }

  bool read() {
    onnx::ImportOptions import = options.import;
    if (options.progress) import.reading = &options.progress->reading;
    auto imported = onnx::importModel(options.model, import, context, &report.import);
    if (failed(imported)) return false;
    module = std::move(*imported);
    if (options.progress) options.progress->node = heaviestNode(*module);
    for (const std::string &warning : report.import.warnings) say("warning", warning);
    for (const std::string &note : report.import.notes) say("note", note);
    return true;
  }

  bool lower(Phase phase) {
    if (phase == Phase::Schedule && options.memory) {
      schedule.activations = options.offloadActivations;
      auto fitting = scheduleFor(*module, *options.memory, schedule);
      if (failed(fitting)) return false;
      schedule = *fitting;
    }
    PassManager pm(&context, ModuleOp::getOperationName());
    pm.enableVerifier(true);
    if (options.progress) pm.addInstrumentation(std::make_unique<Announce>(*options.progress));
    addPhase(pm, phase, options, schedule);
    return succeeded(pm.run(*module));
  }

  bool print(llvm::raw_ostream &os) {
    OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(16);
    module->print(os, flags);
    os << "\n";
    return true;
  }

  bool exportPlan(plan::Plan &plan, std::vector<char> &constants) {
    std::string error;
    auto target = codegen::CpuTarget::fromName(options.cpu, error);
    if (failed(target)) {
      say("error", error);
      return false;
    }
    cpu = *target;
    planir::ExportOptions exported;
    exported.model = options.model;
    exported.producer = "zeroc " ZERO_VERSION;
    exported.initSeed = options.initSeed;
    exported.describe = codegen::describe;
    exported.target.set_kind(plan::Target::CPU);
    exported.target.set_cpu(cpu.name);
    for (const std::string &feature : cpu.features) exported.target.add_features(feature);
    if (failed(planir::exportPlan(*module, exported, plan, constants))) return false;
    for (const plan::ModelFile &file : plan::ModelFiles(plan).record()) *plan.add_files() = file;
    if (options.memory && options.world > 1) {
      plan::Decision *decision = plan.add_decisions();
      decision->set_subject("schedule");
      decision->set_choice(describe(schedule));
      decision->set_reason("--device-memory allows " + inspect::grouped(*options.memory) + " bytes");
    }
    return true;
  }

  /// The plan is held against its promises by code that shares nothing with the passes, and against the budget.
  bool judge(const plan::Plan &plan) {
    auto found = judge::checkPlan(plan);
    for (const std::string &sentence : found)
      say("error", "the plan breaks a promise (a defect of the compiler, please report it): " + sentence);
    if (!found.empty()) return false;
    if (!options.memory || inspect::memoryOf(plan).total() <= *options.memory) return true;
    say("error", tooLarge(plan, *options.memory));
    return false;
  }

  /// `zeroc model.onnx -o model.onnx` must not destroy the model or its data.
  bool overwritesNoInput(const plan::Plan &plan, const std::string &output) {
    auto clashes = [&](const std::string &input) {
      if (input.empty() || !llvm::sys::fs::equivalent(input, output)) return false;
      say("error", "the plan would overwrite '" + input + "', which it is compiled from; name another file with -o");
      return true;
    };
    return !clashes(plan.model()) && llvm::none_of(plan.parameters(), [&](const plan::Parameter &p) { return clashes(p.source().file()); });
  }

  bool generate(const plan::Plan &plan, llvm::SmallVector<char, 0> &object) {
    llvm::SmallVector<func::FuncOp> kernels;
    for (const plan::Kernel &kernel : plan.kernels()) kernels.push_back(module->lookupSymbol<func::FuncOp>(kernel.symbol()));
    auto compiled = codegen::compileToSharedObject(kernels, cpu, options.threads);
    if (failed(compiled)) return false;
    object = std::move(*compiled);
    return true;
  }

  const CompileOptions &options;
  const Say &say;
  CompileReport &report;
  MLIRContext context;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
  codegen::CpuTarget cpu;
  schedule::Options schedule; // the usual one, or what --device-memory allows
};

} // namespace

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
    addPhase(pm, phase, options);
    os << kPhases[int(phase)] << ": ";
    pm.printAsTextualPipeline(os);
    os << "\n";
  }
  return text;
}

bool compile(const CompileOptions &options, std::optional<Phase> emit, llvm::raw_ostream &os, const std::string &output, const Say &say,
             CompileReport &report, plan::Plan &result) {
  try {
    return Compilation(options, say, report).run(emit, os, output, result);
  } catch (const Error &error) {
    say("error", error.what());
    return false;
  }
}

} // namespace zero::pipeline

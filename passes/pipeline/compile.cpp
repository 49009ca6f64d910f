//===- compile.cpp - phase after phase ---------------------------------------------------------------===//
#include "passes/pipeline/compile.h"
#include "compiler/codegen/codegen.h"
#include "compiler/nn/Nn.h"
#include "compiler/plan/Plan.h"
#include "compiler/plan/export.h"
#include "compiler/zero/Zero.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/pipeline/changes.h"
#include "passes/pipeline/inline_thread_pool.h"
#include "passes/pipeline/machine_code.h"
#include "passes/pipeline/phases.h"
#include "passes/pipeline/quiet.h"
#include "passes/pipeline/too_large.h"
#include "passes/pipeline/trained_models.h"
#include "passes/place/Passes.h"
#include "passes/train/Passes.h"
#include "runtime/base/error.h"
#include "runtime/inspect/inspect.h"
#include "runtime/judge/judge.h"
#include "runtime/plan/container.h"
#include "runtime/plan/model_files.h"
#include "runtime/plan/validate.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>

using namespace mlir;

namespace zero::pipeline {
namespace {

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
      : options(options), say(say), report(report), handler(&context, [this](Diagnostic &d) { return forward(d); }), machine(options, say),
        settings(settingsOf(options)) {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, nn::NnDialect, state::ZeroDialect, planir::PlanDialect>();
    codegen::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false); // a location names the node; the operation itself can be as long as the model
    context.disableMultithreading();
    if (options.threads > 1 && options.budgets.device) context.setThreadPool(pool); // the search has several, with a module each
  }
  ~Compilation() { // the names are the context's
    if (options.progress) options.progress->node = options.progress->reading.node = options.progress->pass = nullptr;
  }

  bool run(std::optional<Phase> emit, llvm::raw_ostream &os, const std::string &output, plan::Plan &plan) {
    std::optional<plan::SigningKey> key; // before anything that takes time
    if (!options.signWith.empty()) key.emplace(options.signWith);
    if (!timed("read", [&] { return read(); })) return false;
    for (Phase phase : {Phase::Import, Phase::Train, Phase::Shard, Phase::Schedule, Phase::Place}) {
      if (!timed(nameOf(phase), [&] { return lower(phase, emit); })) return false;
      if (emit == phase) return print(os);
    }
    std::vector<char> constants;
    Code code;
    if (!timed("export", [&] { return exportPlan(plan, constants); }) || !timed("judge", [&] { return judge(plan, constants.size()); }))
      return false;
    if (emit == Phase::Plan) {
      os << inspect::firstPage(plan) << "\n" << inspect::scheduleText(plan, true);
      return true;
    }
    if (options.target != plan::Target::SIM && !timed("kernels", [&] { return machine.generate(*module, plan, code); })) return false;
    return timed("write", [&] {
      if (options.progress) options.progress->writing = true;
      plan::save(output, plan, std::as_bytes(std::span(code.kernels)), std::as_bytes(std::span(constants)), key ? &*key : nullptr,
                 std::as_bytes(std::span(code.onHost)));
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
    bool isNote = d.getSeverity() == DiagnosticSeverity::Note;
    std::vector<std::string> *notes = isNote ? KeepNotes::here() : nullptr;
    if (Quiet::here() && !notes) return success();
    if (d.getSeverity() == DiagnosticSeverity::Warning && KeepNotes::here()) return success(); // it was said of the model as flags have it
    static constexpr const char *severities[] = {"note", "warning", "error", "remark"};
    std::string node = planir::nameOf(d.getLocation()), text = d.str();
    if (!node.empty() && node != options.model && text.find(node) == std::string::npos) text = "node '" + node + "': " + text;
    for (Diagnostic &note : d.getNotes()) text += "; " + note.str();
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (notes)
      notes->push_back(text);
    else
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

  /// Kernels for GPUs do not do all of what runtime/plan/hidden.h says.
  void sayOfHiddenRows() {
    bool some = false;
    module->walk([&](nn::AttentionOp op) { some |= op.getBeyond().has_value(); });
    if (some && options.target == plan::Target::CUDA)
      say("note", "masks hide keys by a finite number; a row that sees no other key, as in padding in front of a sample, weighs on a GPU "
                  "those that causal attention or its window lets it see, where PyTorch weighs all keys: give labels there -100");
  }

  bool lower(Phase phase, std::optional<Phase> emit) {
    bool searches = options.budgets.device.has_value();
    if (phase == Phase::Train) {
      tokens = train::tokensOf(*module);
      sayOfHiddenRows();
    }
    if (phase == Phase::Train && searches && (options.tileParts != 1 || !options.tileTokens)) imported = module->clone();
    if (phase == Phase::Shard && searches) {
      if (!choose()) return false;
      isPlaced = found->placed && emit != Phase::Shard && emit != Phase::Schedule;
      if (!isPlaced) return run(*module, [&](OpPassManager &pm) { addSharding(pm, settings); });
      module = std::move(found->placed);
      return true;
    }
    if (isPlaced && phase == Phase::Schedule) return true;
    if (isPlaced) return run(*module, [&](OpPassManager &pm) { pm.addPass(place::createVerifyPass()); });
    return run(*module, [&](OpPassManager &pm) { addPhase(pm, phase, options, settings); });
  }

  bool run(ModuleOp on, llvm::function_ref<void(OpPassManager &)> add) { return runPasses(on, options, add); }

  /// What is left open is tried on copies of the module with its kernels.
  bool choose() {
    TrainedModels models(options, settings, std::move(module), std::move(imported));
    found = search([&](Tiling tiling) { return models.with(tiling); }, [&](Tiling tiling) { return models.withFewLayers(tiling); },
                   questionOf(options, tokens), options.threads);
    if (failed(found)) return false;
    report.searched = {found->tried, found->steps};
    auto [chosen, notes] = models.take(found->chosen.settings.tiling);
    module = std::move(chosen);
    settings = found->chosen.settings;
    for (const std::string &note : notes) say("note", note);
    return succeeded(verify(found->placed ? *found->placed : *module));
  }

  bool print(llvm::raw_ostream &os) {
    OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(16);
    module->print(os, flags);
    os << "\n";
    return true;
  }

  bool exportPlan(plan::Plan &plan, std::vector<char> &constants) {
    planir::ExportOptions exported;
    exported.model = options.model;
    exported.producer = "zeroc " ZERO_VERSION;
    exported.initSeed = options.initSeed;
    exported.describe = options.target == plan::Target::CUDA ? codegen::describeForGpu : codegen::describe;
    if (!machine.describe(*module, exported.target)) return false;
    if (failed(planir::exportPlan(*module, exported, plan, constants))) return false;
    for (const plan::ModelFile &file : plan::ModelFiles(plan).record()) *plan.add_files() = file;
    if (succeeded(found))
      addDecisions(plan, explain(*found, questionOf(options, tokens), simulate::timeOf(plan, options.machine, /*clips=*/true)));
    addDecisions(plan, changesOf(*module, plan, options, settings));
    return true;
  }

  static void addDecisions(plan::Plan &plan, const std::vector<std::array<std::string, 3>> &lines) {
    for (const auto &[subject, choice, reason] : lines) {
      plan::Decision *decision = plan.add_decisions();
      decision->set_subject(subject);
      decision->set_choice(choice);
      decision->set_reason(reason);
    }
  }

  /// The plan is held against what everybody checks who reads it (its sentence is thrown), against its promises, by code that shares
  /// nothing with the passes, and against the budget.
  bool judge(const plan::Plan &plan, uint64_t constantBytes) {
    plan::validate(plan, constantBytes);
    auto found = judge::checkPlan(plan);
    for (const std::string &sentence : found)
      say("error", "the plan breaks a promise (a defect of the compiler, please report it): " + sentence);
    if (!found.empty()) return false;
    std::string excess = tooLarge(plan, questionOf(options, tokens));
    if (!excess.empty()) say("error", excess);
    return excess.empty();
  }

  const CompileOptions &options;
  const Say &say;
  CompileReport &report;
  InlineThreadPool pool;
  MLIRContext context;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module, imported; // imported: as it was before it was trained, where that is to be done in several ways
  MachineCode machine;
  int64_t tokens = 0; // of a micro-step
  Settings settings;  // what flags say, and then what was found
  FailureOr<Found> found = failure();
  bool isPlaced = false; // the module, by the search: it has offsets and waits
};

} // namespace

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

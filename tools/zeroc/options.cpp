//===- options.cpp - what flags say into options --------------------------------------------------===//
#include "tools/zeroc/options.h"
#include "compiler/codegen/codegen.h"
#include "runtime/base/error.h"
#include "runtime/plan/container.h"
#include "runtime/simulate/machines.h"
#include "tools/command_line.h"
#include "tools/zeroc/flags.h"
#include "tools/zeroc/values.h"
#include "llvm/Support/FileSystem.h"

namespace zero {
namespace {

/// What is estimated where --machine says nothing.
simulate::Machine defaultMachine(const pipeline::CompileOptions &o) {
  if (o.target == plan::Target::CUDA) return simulate::defaultMachine(o.target, o.gpu, uint64_t(o.world));
  std::string unknown; // is said when kernels are made
  auto cpu = codegen::CpuTarget::fromName(o.cpu, unknown);
  return simulate::defaultMachine(o.target, o.target == plan::Target::CPU && succeeded(cpu) ? cpu->name : "", uint64_t(o.world));
}

/// A plan that is there already is signed and nothing else: no other flag has a say over it.
void requireSigningAlone(const CLI::App &app) {
  if (app.get_option("--sign")->count() == 0) throw Error("the model is a plan already; all that can be done to it is --sign KEY");
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0 && option->get_name() != "model" && option->get_name() != "--sign" && option->get_name() != "--output" &&
        option->get_name() != "--quiet")
      throw Error(option->get_name() + " has no say over a plan that is compiled already; it can be signed, with --sign KEY and -o");
}

/// Flags whose words stand for a switch or a number.
void readWords(const Texts &texts, pipeline::CompileOptions &o) {
  auto numberOrAuto = [](const std::string &text) { return text == "auto" ? std::nullopt : std::optional(std::stoll(text)); };
  o.prefetch = texts.prefetch == "auto";
  o.epilogues = texts.epilogues == "auto";
  if (texts.tile != "off") o.tileParts = numberOrAuto(texts.tile);
  if (texts.tileTokens != "off") o.tileTokens = numberOrAuto(texts.tileTokens);
  o.stage = numberOrAuto(texts.stage);
  o.target = texts.target == "sim" ? plan::Target::SIM : texts.target == "cuda" ? plan::Target::CUDA : plan::Target::CPU;
}

/// Refuses flags that decide nothing beside the others.
void refuseIdleFlags(const CLI::App &app, const CommandLine &line, const Texts &texts) {
  const pipeline::CompileOptions &o = line.compile;
  if (o.target == plan::Target::SIM && app.get_option("--cpu")->count())
    throw Error("--cpu has no say with --target " + texts.target + ", which makes no code for a processor");
  if (o.target != plan::Target::CUDA && app.get_option("--gpu")->count())
    throw Error("--gpu has no say with --target " + texts.target + ", which makes no code for a GPU");
  if (o.target != plan::Target::CUDA && o.tf32)
    throw Error("--tf32 has no say with --target " + texts.target + "; it is about the products of a GPU");
  if (o.target != plan::Target::CUDA && app.get_option("--epilogues")->count())
    throw Error("--epilogues has no say with --target " + texts.target + "; it is about the library for products of a GPU");
  if (o.precision == "f16" && o.clip != "any")
    throw Error("--clip has no say with --precision f16, whose updates wait for the norm whether it is clipped or not");
  if (line.printPipeline && !texts.deviceMemory.empty())
    throw Error("--print-pipeline prints the passes that flags decide; with --device-memory the model decides too (zero-inspect --why says "
                "what was chosen for a plan)");
}

/// What the plan and zeroc itself may take.
void readLimits(const Texts &texts, CommandLine &line) {
  pipeline::CompileOptions &o = line.compile;
  for (auto [flag, text, budget] : {std::tuple("--device-memory", &texts.deviceMemory, &o.budgets.device),
                                    {"--host-memory", &texts.hostMemory, &o.budgets.host},
                                    {"--disk-memory", &texts.diskMemory, &o.budgets.disk}})
    if (!text->empty()) *budget = readBytes(flag, *text);
  if (!texts.compileMemory.empty()) line.limits.bytes = readBytes("--compile-memory", texts.compileMemory);
  if (texts.compileSeconds) line.limits.seconds = uint64_t(*texts.compileSeconds);
}

void readOutput(const Texts &texts, CommandLine &line) {
  if (!texts.emit.empty()) {
    line.emit = pipeline::phaseFromName(texts.emit);
    if (!line.emit) throw Error("there is no phase '" + texts.emit + "'; --emit takes one of " + pipeline::phaseNames());
  } else if (line.output.empty()) {
    throw Error("where shall the plan go? Add -o plan.bin (or --emit PHASE to print a phase)");
  }
  if (const std::string &key = line.compile.signWith; !key.empty() && llvm::sys::fs::equivalent(key, line.output))
    throw Error("the plan would overwrite the key '" + key + "'; name another file with -o");
}

} // namespace

CommandLine parseCommandLine(int argc, char **argv, CLI::App &app) {
  CommandLine line;
  Texts texts;
  declare(app, line, texts);
  parse(app, argc, argv);
  pipeline::CompileOptions &o = line.compile;

  readWords(texts, o);
  if (o.model.empty() && !line.printPipeline) throw Error("which model? Usage: zeroc model.onnx -o plan.bin");
  line.signOnly = !line.printPipeline && plan::isPlan(o.model);
  if (line.signOnly) requireSigningAlone(app);
  refuseIdleFlags(app, line, texts);
  if (line.printPipeline) return line;
  readBinds(texts.binds, o.import.bind);
  readTies(texts.tie, o.import);
  if (o.accumulateOrder == "vertical" && o.accumulate > pipeline::kMostVertical)
    throw Error("--accumulate-order vertical holds all micro-steps in one program, which takes " + std::to_string(pipeline::kMostVertical) +
                " at most; with --accumulate " + std::to_string(o.accumulate) + " use horizontal, or a larger batch and fewer micro-steps");
  line.machine = texts.machine;
  o.machine = texts.machine.empty() ? defaultMachine(o) : simulate::equalRank(simulate::namedOrRead(texts.machine), uint64_t(o.world));
  if (o.target == plan::Target::SIM) o.machine.exchange = o.machine.link; // as --simulate takes such a plan
  readLimits(texts, line);
  o.import.init = readInit(texts.init, o.initSeed);
  readOutput(texts, line);
  return line;
}

} // namespace zero

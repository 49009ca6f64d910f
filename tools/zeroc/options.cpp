//===- options.cpp - flags into options, and sentences for what is not built -----------------------===//
#include "tools/zeroc/options.h"
#include "runtime/plan/error.h"
#include "tools/command_line.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace zero {
namespace {

/// "batch=4,seq=128" into sizes.
void readBinds(const std::vector<std::string> &binds, std::map<std::string, int64_t> &sizes) {
  for (const std::string &bind : binds) {
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(bind).split(parts, ',', -1, false);
    for (llvm::StringRef part : parts) {
      auto [name, value] = part.split('=');
      int64_t n = 0;
      if (name.empty() || value.getAsInteger(10, n) || n < 1)
        throw Error("--bind wants NAME=N with N at least 1, not '" + part.str() + "'");
      if (auto [it, fresh] = sizes.emplace(name.str(), n); !fresh && it->second != n)
        throw Error("--bind gives " + name.str() + " two sizes, " + std::to_string(it->second) + " and " + std::to_string(n));
    }
  }
}

/// "12", "4K", "16MiB", "1.5G" in bytes (powers of 1024).
uint64_t readBytes(const std::string &flag, llvm::StringRef text) {
  llvm::StringRef number = text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  std::string unit = text.drop_front(number.size()).upper();
  double value = 0;
  static constexpr const char *prefixes = "KMGT";
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    const char *found = std::strchr(prefixes, unit[0]);
    std::string rest = unit.substr(1);
    if (!found || (!rest.empty() && rest != "B" && rest != "IB"))
      throw Error(flag + " wants a size such as 512M or 24GiB, not '" + text.str() + "'");
    factor = double(1ull << (10 * (found - prefixes + 1)));
  }
  if (number.empty() || number.getAsDouble(value)) throw Error(flag + " wants a size such as 512M or 24GiB, not '" + text.str() + "'");
  return uint64_t(value * factor);
}

/// A flag of the command line whose part is not built: any value but `harmless` is refused by name.
struct Later {
  const char *flag;
  const char *help;
  std::vector<std::string> harmless; // values that ask for nothing
  std::string value = {};
};

} // namespace

CommandLine parseCommandLine(int argc, char **argv, CLI::App &app) {
  CommandLine line;
  pipeline::CompileOptions &o = line.compile;
  std::vector<std::string> binds;
  std::string tie = "auto", init = "weights", emit, memory;
  std::vector<Later> later{
      {"--precision", "f32 | bf16 | f16", {"f32"}},
      {"--target", "cpu | cuda | sim", {"cpu"}},
      {"--host-memory", "Budget of the host tier", {}},
      {"--disk-memory", "Budget of the disk tier", {}},
      {"--offload-params", "none | host | disk | auto", {"none"}},
      {"--offload-optimizer", "none | host | disk | auto", {"none"}},
      {"--offload-activations", "none | host | disk | auto", {"none"}},
      {"--tile", "auto | off | N", {"off"}},
      {"--report", "FILE.html | FILE.json", {}},
  };
  app.add_option("model", o.model, "model.onnx, as exported from PyTorch");
  app.add_option("-o,--output", line.output, "Where the plan goes");
  app.add_option("--bind", binds, "Sizes of symbolic dimensions: NAME=N[,NAME=N]")->expected(1)->allow_extra_args(false)->take_all();
  app.add_option("--loss", o.loss, "cross_entropy | mse | output:NAME")->capture_default_str();
  app.add_option("--recompute", o.recompute, "auto | none: what backward computes again instead of keeping it")
      ->capture_default_str()
      ->check([](const std::string &how) -> std::string {
        if (how == "full") return "full is not built yet; auto and none are";
        return how == "auto" || how == "none" ? "" : "it is auto or none, not " + how;
      });
  app.add_option("--optimizer", o.optimizer, "adamw | sgd")->capture_default_str()->check(CLI::IsMember({"adamw", "sgd"}));
  app.add_option("--freeze", o.import.freeze, "Parameters not to train (regular expression, may be given again)")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--train", o.import.train, "Initializers to train after all")->expected(1)->allow_extra_args(false)->take_all();
  app.add_option("--tie", tie, "Initializers equal up to transposition are one parameter")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
  app.add_option("--world", o.world, "Ranks")->check(wholeNumber(1, 1 << 20))->capture_default_str();
  app.add_option("--stage", o.stage, "ZeRO stage: what is sharded")->check(wholeNumber(0, 3))->capture_default_str();
  app.add_option("--accumulate", o.accumulate, "Micro-steps per optimizer step")->check(wholeNumber(1, 1 << 20))->capture_default_str();
  app.add_option("--init", init, "weights | random[:SEED]")->capture_default_str();
  app.add_option("--cpu", o.cpu, "native | x86-64-v3 | x86-64-v4")->capture_default_str();
  app.add_option("--bucket-elements", o.bucketElements, "Largest bucket (0: by the model's size)")->check(wholeNumber(0));
  app.add_option("--device-memory", memory, "Bytes one rank may use; no plan is written that needs more");
  app.add_option("--emit", emit, "Print this phase and stop: " + pipeline::phaseNames());
  app.add_flag("--timing", line.timing, "Print the seconds of each phase");
  app.add_flag("-q,--quiet", line.quiet, "Print errors and warnings only");
  app.add_flag("--print-pipeline", line.printPipeline, "Print the passes of each phase and stop");
  for (Later &l : later) app.add_option(l.flag, l.value, std::string(l.help) + " (not built yet)");
  app.parse(argc, argv);

  for (const Later &l : later)
    if (!l.value.empty() && std::find(l.harmless.begin(), l.harmless.end(), l.value) == l.harmless.end())
      throw Error(std::string(l.flag) + " " + l.value + " is not built yet" +
                  (l.harmless.empty() ? "" : "; what works is " + std::string(l.flag) + " " + l.harmless[0]));
  if (line.printPipeline) return line;
  if (o.model.empty()) throw Error("which model? Usage: zeroc model.onnx -o plan.bin");
  readBinds(binds, o.import.bind);
  o.import.tie = tie == "auto";
  if (!memory.empty()) o.memory = readBytes("--device-memory", memory);
  auto [rule, seed] = llvm::StringRef(init).split(':');
  if (rule != "weights" && rule != "random") throw Error("--init is weights or random[:SEED], not '" + init + "'");
  bool seeded = llvm::StringRef(init).contains(':');
  if (seeded && rule == "weights") throw Error("--init weights reads the model's own values and takes no seed");
  if (seeded && seed.getAsInteger(10, o.initSeed)) throw Error("--init random takes a number as its seed, not '" + seed.str() + "'");
  o.import.init = rule == "random" ? onnx::Init::Random : onnx::Init::Weights;
  if (!emit.empty()) {
    line.emit = pipeline::phaseFromName(emit);
    if (!line.emit) throw Error("there is no phase '" + emit + "'; --emit takes one of " + pipeline::phaseNames());
  } else if (line.output.empty()) {
    throw Error("where shall the plan go? Add -o plan.bin (or --emit PHASE to print a phase)");
  }
  return line;
}

} // namespace zero

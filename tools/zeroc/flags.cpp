//===- flags.cpp - the flags of zeroc, as --help lists them --------------------------------------------===//
#include "tools/zeroc/flags.h"
#include "tools/command_line.h"

namespace zero {
namespace {

void declareModel(CLI::App &app, pipeline::CompileOptions &o, Texts &texts) {
  const char *group = "Model";
  app.add_option("model", o.model, "an ONNX file, as exported from PyTorch")->type_name("FILE");
  addList(app, "--bind", texts.binds, "sizes of symbolic dimensions; the batch is that of one rank and one micro-step")
      ->type_name("NAME=N[,NAME=N]")
      ->group(group);
  addList(app, "--freeze", o.import.freeze, "do not train parameters whose name matches (may be given again)")
      ->type_name("REGEX")
      ->group(group);
  addList(app, "--train", o.import.train, "train initializers whose name matches after all (may be given again)")
      ->type_name("REGEX")
      ->group(group);
  addList(
      app, "--tie", texts.tie,
      "make initializers with the same values one parameter where the graph gives a reason (auto), never (off), where their names match "
      "(may be given again) [auto]")
      ->type_name("auto|off|REGEX")
      ->group(group);
  addList(
      app, "--untie", o.import.untied,
      "make every use of an initializer whose name matches a parameter of its own, where an exporter has merged them (may be given again)")
      ->type_name("REGEX")
      ->group(group);
  app.add_option("--init", texts.init, "where first values come from: the file, or a rule [weights]")
      ->type_name("weights|random[:SEED]")
      ->group(group);
}

void declareStep(CLI::App &app, pipeline::CompileOptions &o) {
  const char *group = "Training step";
  addList(
      app, "--loss", o.losses,
      "cross_entropy or mse of an output and an input 'labels', or an output that is the loss; given several times: their weighted sum, "
      "with inputs 'labels.OUTPUT' [cross_entropy]")
      ->type_name("[WEIGHT*]cross_entropy|mse|output[:OUTPUT]")
      ->group(group);
  app.add_option("--label-smoothing", o.labelSmoothing, "part of each label of cross_entropy that is spread over all classes [0]")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  app.add_option("--optimizer", o.optimizer, "its numbers are zerorun's flags [adamw]")
      ->type_name("adamw|sgd")
      ->check(oneOf({"adamw", "sgd"}))
      ->group(group);
  app.add_option("--clip", o.clip,
                 "whether runs clip the norm of gradients (zerorun --clip): never and always leave out the programs of other runs, so that "
                 "a budget serves only what is run [any]")
      ->type_name("any|never|always")
      ->check(oneOf({"any", "never", "always"}))
      ->group(group);
  app.add_option("--precision", o.precision,
                 "type of activations and of the parameters that products read; masters, sums and "
                 "gradients of parameters are f32 in any; f16 scales the loss (zerorun --loss-scale) [f32]")
      ->type_name("f32|bf16|f16")
      ->check(oneOf({"f32", "bf16", "f16"}))
      ->group(group);
  app.add_option("--accumulate", o.accumulate, "micro-steps in one optimizer step [1]")
      ->type_name("N")
      ->check(wholeNumber(1, 1 << 20))
      ->group(group);
  app.add_option(
         "--accumulate-order", o.accumulateOrder,
         "run micro-steps one after another (horizontal), or bucket by bucket for all of them, so that parameters are fetched and "
         "gathered once for all, with the activations of all at hand (vertical); auto: the faster within --device-memory [horizontal]")
      ->type_name("horizontal|vertical|auto")
      ->check(oneOf({"horizontal", "vertical", "auto"}))
      ->group(group);
}

void declareSharding(CLI::App &app, pipeline::CompileOptions &o, Texts &texts) {
  const char *group = "ZeRO";
  app.add_option("--world", o.world, "ranks the plan is for [1]")->type_name("N")->check(wholeNumber(1, 1 << 20))->group(group);
  app.add_option(
         "--stage", texts.stage,
         "shard nothing (0), optimizer state (1), gradients too (2), parameters too (3); auto: the one whose step is shortest within "
         "--device-memory [0]")
      ->type_name("0..3|auto")
      ->check([](const std::string &stage) { return stage == "auto" ? std::string() : wholeNumber(0, 3)(stage); })
      ->group(group);
  app.add_option("--reduce-type", o.reduceType,
                 "type in which ranks send each other gradients of parameters, which are summed in f32 [f32]")
      ->type_name("f32|bf16")
      ->check(oneOf({"f32", "bf16"}))
      ->group(group);
  app.add_option("--bucket-elements", o.bucketElements, "largest group of parameters that moves together [by the model's size]")
      ->type_name("N")
      ->check(wholeNumber(0))
      ->group(group);
}

void declareMemory(CLI::App &app, pipeline::CompileOptions &o, Texts &texts) {
  const char *group = "Memory";
  app.add_option(
         "--device-memory", texts.deviceMemory,
         "bytes of the device one rank may use, such as 24GiB: the plan makes the most of them, with state elsewhere if it must [any]")
      ->type_name("SIZE")
      ->group(group);
  app.add_option("--host-memory", texts.hostMemory, "bytes of the host for state beside --device-memory, before the disk is used [0]")
      ->type_name("SIZE")
      ->group(group);
  app.add_option("--machine", texts.machine,
                 "how fast the machine is, a name or a file of JSON: of what fits, the plan whose step is estimated shortest is taken "
                 "(docs/offloading.md) [by --target: a GPU as --gpu names it in a node of eight, or 2 processors and a disk]")
      ->type_name("a100|h100|FILE")
      ->group(group);
  app.add_option("--disk-memory", texts.diskMemory, "bytes of disk one rank may use [any]")->type_name("SIZE")->group(group);
  auto addTier = [&](const char *flag, std::string &home, const char *help) {
    app.add_option(flag, home, help)->type_name("none|host|disk|auto")->check(oneOf({"none", "host", "disk", "auto"}))->group(group);
  };
  addTier("--offload-params", o.offloadParams,
          "where parameters rest while nobody uses them: none is the device, auto where the budgets have room [auto]");
  addTier("--offload-optimizer", o.offloadOptimizer, "where the optimizer's state rests, and gradients between micro-steps [auto]");
  addTier("--offload-activations", o.offloadActivations, "where what forward leaves waits for backward [auto]");
  app.add_option(
         "--tile", texts.tile,
         "cut parameters larger than 1/N of the largest one into tiles of at most that size, which are fetched, used and updated one "
         "after another, the vocabulary projection together with its cross-entropy; auto: as few as --device-memory takes, up to 16 [off]")
      ->type_name("off|N|auto")
      ->check([](const std::string &parts) { return parts == "off" || parts == "auto" ? std::string() : wholeNumber(2, 4096)(parts); })
      ->group(group);
  app.add_option("--tile-tokens", texts.tileTokens,
                 "compute what is wide and done for each token by itself (the inside of an MLP, logits with their cross-entropy) for N "
                 "tokens after "
                 "another, forward and backward, which does it again; auto: for as many as --device-memory takes [off]")
      ->type_name("off|N|auto")
      ->check([](const std::string &n) { return n == "off" || n == "auto" ? std::string() : wholeNumber(1, int64_t(1) << 40)(n); })
      ->group(group);
  app.add_option(
         "--prefetch", texts.prefetch,
         "bring parameters and state before they are needed, and let gradients travel while others are computed (auto), or each when "
         "its turn comes (none): least memory, and what hiding transfers wins [auto]")
      ->type_name("auto|none")
      ->check(oneOf({"auto", "none"}))
      ->group(group);
  app.add_option("--recompute", o.recompute,
                 "what backward computes again instead of keeping it: what is cheap, and what --device-memory has no room for (auto), all "
                 "between the inputs of repeated blocks (full), nothing (none); with --target cuda nothing is cheap [auto]")
      ->type_name("auto|none|full")
      ->check(oneOf({"auto", "none", "full"}))
      ->group(group);
}

void declareCompiling(CLI::App &app, Texts &texts) {
  const char *group = "Compiling";
  app.add_option(
         "--epilogues", texts.epilogues,
         "with --target cuda, let products add biases and take GELU and its gradient in the pass they make over memory anyway (auto), "
         "or kernels of their own (none): numbers rounded elsewhere [auto]")
      ->type_name("auto|none")
      ->check(oneOf({"auto", "none"}))
      ->group(group);
  app.add_option("--compile-memory", texts.compileMemory, "memory zeroc itself may take, such as 4GiB; 0: any [by the model's size]")
      ->type_name("SIZE")
      ->group(group);
  app.add_option("--compile-seconds", texts.compileSeconds, "processor time it may take; 0: any [by the model's size]")
      ->type_name("N")
      ->check(wholeNumber(0))
      ->group(group);
}

void declareOutput(CLI::App &app, CommandLine &line, Texts &texts) {
  const char *group = "Output";
  pipeline::CompileOptions &o = line.compile;
  app.add_option("-o,--output", line.output, "where the plan goes")->type_name("FILE")->group(group);
  app.add_option("--cpu", o.cpu, "the CPU that kernels are made for; with --target cuda those that update state in host memory [native]")
      ->type_name("native|x86-64-v3|x86-64-v4")
      ->group(group);
  app.add_option(
         "--gpu", o.gpu,
         "the GPU that kernels of --target cuda are made for; later ones run them too, but for sm_90a: H100 and H200, faster [sm_80]")
      ->type_name("sm_80|sm_90|sm_90a")
      ->group(group);
  app.add_flag("--tf32", o.tf32,
               "with --target cuda, products of f32 round what they multiply to 10 bits of fraction (TF32), and sum in f32")
      ->group(group);
  app.add_option("--sign", o.signWith, "sign the plan with this Ed25519 key in PEM form; a plan in place of a model is signed as it is")
      ->type_name("KEY")
      ->group(group);
  app.add_option("--target", texts.target,
                 "what the plan runs on; sim: nothing, it has no machine code and is to be read, judged and counted [cpu]")
      ->type_name("cpu|cuda|sim")
      ->check(oneOf({"cpu", "cuda", "sim"}))
      ->group(group);
  app.add_option("--emit", texts.emit, "print this phase and stop: " + pipeline::phaseNames())->type_name("PHASE")->group(group);
  app.add_option("--report", line.report, "beside the plan what it will do: .html, a page with drawings, or .json, numbers")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--print-pipeline", line.printPipeline, "print the passes of each phase and stop")->group(group);
  app.add_flag("--timing", line.timing, "print the seconds of each phase, and how much was tried to fit a budget")->group(group);
  app.add_flag("-q,--quiet", line.quiet, "print errors and warnings only")->group(group);
}

} // namespace

void declare(CLI::App &app, CommandLine &line, Texts &texts) {
  app.get_formatter()->column_width(38);
  declareModel(app, line.compile, texts);
  declareStep(app, line.compile);
  declareSharding(app, line.compile, texts);
  declareMemory(app, line.compile, texts);
  declareCompiling(app, texts);
  declareOutput(app, line, texts);
}

} // namespace zero

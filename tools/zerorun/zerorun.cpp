// zerorun: reads the command line, and nothing else.
#include "runtime/comm/communicator.h"
#include "runtime/process/addresses.h"
#include "runtime/process/last_words.h"
#include "runtime/process/signals.h"
#include "runtime/process/stacks.h"
#include "runtime/process/streams.h"
#include "runtime/process/subnormal.h"
#include "runtime/simulate/simulated_run.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/train.h"
#include "tools/command_line.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <map>
#include <string>

using namespace zero::runtime;

static const std::map<std::string, Schedule> kSchedules{
    {"constant", Schedule::Constant}, {"cosine", Schedule::Cosine}, {"linear", Schedule::Linear}};

static std::string isLabelRule(const std::string &text) {
  return labelRule(text) ? "" : "wants same, shifted or next:INPUT, not '" + text + "'";
}

static void declareData(CLI::App &app, TrainOptions &o) {
  const char *group = "Plan";
  app.add_option("--require-signature", o.requireSignature,
                 "run only a plan that this key has signed (zeroc --sign): a public key in PEM form")
      ->type_name("PUBKEY")
      ->group(group);

  app.add_flag(
         "--tune", o.tune,
         "measure on this machine's GPU which algorithm of its library is fastest for each matrix product of the plan, write FILE.tune "
         "beside it, which runs of the plan take, and end")
      ->group(group);

  group = "Data";
  app.add_option("--data", o.data, ".safetensors or .npz (a tensor per input, samples first), .bin (uint16 tokens), .u32.bin, .txt (bytes)")
      ->type_name("FILE")
      ->group(group);
  app.add_option_function<std::string>(
         "--labels", [&o](const std::string &text) { o.reading.labels = *labelRule(text); },
         "the file's, for their own places or (shifted, as Hugging Face has them) the ones before; or the next tokens of INPUT [same]")
      ->type_name("same|shifted|next:INPUT")
      ->check(isLabelRule)
      ->group(group);
  zero::addList(app, "--ignore-tensor", o.reading.ignored,
                "train without a tensor that the data holds and the plan does not read (may be given again)")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--shuffle", o.shuffle, "every epoch in another order, drawn from --seed [the order of the file]")->group(group);
  app.add_flag("--show-batch", o.showBatch, "show the first sample in words before training; --steps 0 shows it and ends")->group(group);
}

// An expression may hold signs of equality, a number does not.
static std::string isScale(const std::string &text) {
  size_t at = text.rfind('=');
  return at != std::string::npos && at > 0 && zero::realNumber(text.substr(at + 1)).empty()
             ? ""
             : "wants REGEX=X, an expression and a number, not '" + text + "'";
}

static std::vector<std::pair<std::string, double>> scales(const std::vector<std::string> &texts) {
  std::vector<std::pair<std::string, double>> list;
  for (const std::string &text : texts) list.emplace_back(text.substr(0, text.rfind('=')), *zero::toReal(text.substr(text.rfind('=') + 1)));
  return list;
}

static std::string isLossScale(const std::string &text) {
  if (text == "auto" || (zero::wholeNumber(1, kLargestLossScale)(text).empty() && std::has_single_bit(std::stoull(text)))) return "";
  return "wants auto or a power of two from 1 to 2^60, with which scaling rounds nothing, not '" + text + "'";
}

static void declareTraining(CLI::App &app, TrainOptions &o) {
  const char *group = "Training";
  app.add_option("--steps", o.steps, "optimizer steps of the whole run, those of a resumed one included")
      ->type_name("N")
      ->check(zero::wholeNumber(0, 1000000000000000))
      ->group(group);
  app.add_option("--seed", o.seed, "of all random numbers of training [0]")->type_name("N")->check(zero::wholeNumber(0))->group(group);
  app.add_option("--threads", o.threads, "threads of this rank [as many as it may use]")
      ->type_name("N")
      ->check(zero::wholeNumber(1, 4096))
      ->group(group);
  app.add_option("--timeout", o.timeout, "end the run when ranks wait so long for one of them, 0: never [1800]")
      ->type_name("SECONDS")
      ->check(zero::wholeNumber(0, 100000000))
      ->group(group);

  app.add_option("--disk-path", o.diskPaths,
                 "folders, each on a disk of its own, for what the plan keeps on disk [where the plan lies]; nothing stays there")
      ->type_name("DIR[,DIR]...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->group(group);
}

static void declareOptimizer(CLI::App &app, TrainOptions &o) {
  const char *group = "Optimizer";
  app.add_option("--lr", o.lr, "peak learning rate [1e-3]")->type_name("X")->check(zero::realNumber)->group(group);
  app.add_option_function<std::string>(
         "--schedule", [&o](const std::string &name) { o.schedule = kSchedules.at(name); },
         "how the learning rate goes on after warm-up [constant]")
      ->type_name("constant|cosine|linear")
      ->check(zero::oneOf({"constant", "cosine", "linear"}))
      ->group(group);
  app.add_option("--warmup", o.warmup, "steps over which the learning rate rises [0]")
      ->type_name("N")
      ->check(zero::wholeNumber(0))
      ->group(group);
  app.add_option("--weight-decay", o.weightDecay, "decoupled for AdamW [AdamW 0.01, SGD 0]")
      ->type_name("X")
      ->check(zero::realNumber)
      ->group(group);
  zero::addList(app, "--no-decay", o.noDecay, "no weight decay for parameters whose name matches (may be given again) [all decay]")
      ->type_name("REGEX")
      ->group(group);
  app.add_option_function<std::vector<std::string>>(
         "--lr-scale", [&o](const std::vector<std::string> &texts) { o.lrScales = scales(texts); },
         "learning rate times X for parameters whose name matches (may be given again) [1]")
      ->type_name("REGEX=X")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all()
      ->check(isScale)
      ->group(group);
  app.add_option_function<std::string>(
         "--loss-scale", [&o](const std::string &text) { o.lossScale = text == "auto" ? 0 : std::stoull(text); },
         "what the loss of an f16 plan is multiplied by at first: a power of two; it follows the gradients from there on [65536]")
      ->type_name("N|auto")
      ->check(isLossScale)
      ->group(group);
  app.add_option("--betas", o.betas, "A,B of AdamW [0.9,0.999]; A alone is the momentum of SGD [0]")
      ->type_name("A[,B]")
      ->delimiter(',')
      ->check(zero::realNumber)
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--eps", o.eps, "AdamW's epsilon [1e-8]")->type_name("X")->check(zero::realNumber)->group(group);
  app.add_option("--clip", o.clip, "largest global gradient norm [0: no clipping]")->type_name("X")->check(zero::realNumber)->group(group);
}

static void declareResults(CLI::App &app, TrainOptions &o) {
  const char *group = "Evaluation";
  app.add_option("--eval-data", o.evalData, "held-out samples; their loss is reported at the end of the run")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--eval-every", o.evalEvery, "steps between evaluations")->type_name("N")->check(zero::wholeNumber(1))->group(group);

  group = "Checkpoints";
  app.add_option("--checkpoint", o.checkpoint, "write one at the end of the run and when it is stopped (Ctrl-C)")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--every", o.every, "steps between checkpoints")->type_name("N")->check(zero::wholeNumber(1))->group(group);
  app.add_option("--keep", o.keep, "checkpoints that stay, the newest ones [2]")->type_name("N")->check(zero::wholeNumber(1))->group(group);
  app.add_option("--resume", o.resume, "go on from the newest whole one; from the start if it is the folder of --checkpoint and holds none")
      ->type_name("DIR")
      ->group(group);

  group = "Results";
  app.add_option("--export", o.exportTo, ".safetensors or .onnx: trained weights, in the model's names and layouts")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--only-trained", o.onlyTrained, "leave what is frozen out of --export FILE.safetensors: adapters alone")->group(group);
  app.add_option("--metrics", o.metrics, ".jsonl: loss, learning rate, speed and more, a JSON object a line for every step")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--gradients", o.gradients, ".safetensors: full gradients of the first step, by parameter name")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--drain", o.drain,
               "end each step on all lanes before the next begins, to measure what is won by running on from one into the other")
      ->group(group);
  app.add_flag("--no-graphs", o.noGraphs,
               "launch each step on a GPU by itself, where several could go as one CUDA graph: the bits are the same")
      ->group(group);
  app.add_option("--trace", o.trace, ".json: what every lane did in the first ten steps, for Perfetto or chrome://tracing")
      ->type_name("FILE")
      ->group(group);
}

// A run in virtual time; what has no say in one is refused. 0, or 1 after a sentence.
static int simulate(const CLI::App &app, const TrainOptions &options, const std::string &machine) {
  try {
    for (const CLI::Option *option : app.get_options()) {
      constexpr std::string_view has[] = {"plan", "--simulate", "--steps", "--clip", "--seed", "--metrics", "--trace"};
      if (option->count() > 0 && std::ranges::find(has, option->get_name()) == std::end(has))
        throw zero::Error(option->get_name() + " has no say with --simulate, which computes nothing and takes --steps, --clip, --seed, "
                                               "--metrics and --trace");
    }
    zero::simulate::simulateRun({.plan = options.plan,
                                 .machine = machine,
                                 .steps = options.steps,
                                 .clips = options.clip.value_or(0) > 0,
                                 .seed = options.seed.value_or(0),
                                 .metrics = options.metrics,
                                 .trace = options.trace});
    return 0;
  } catch (const std::exception &error) {
    complainOnce(fmt::format("zerorun: {}", sentenceOf(error)));
    return 1;
  }
}

int main(int argc, char **argv) {
  flushSubnormals(); // before anything starts a thread
  openStandardStreams();
  endInASentence();
  try {
    raiseStacks();
    spareAddresses();
    ownSignals(); // before MPI, or anything else, starts a thread
  } catch (const zero::Error &error) {
    complainOnce(fmt::format("zerorun: {}", error.what()));
    return 1;
  }
  TrainOptions options;
  CLI::App app("Train what zeroc compiled: zerorun plan.bin --data FILE --steps N, alone or one process per rank, started by\n"
               "mpirun -np N, srun --mpi=pmix, torchrun --no-python, or with RANK, WORLD_SIZE and MASTER_ADDR in the environment.",
               "zerorun");
  app.get_formatter()->column_width(38);
  app.add_option("plan", options.plan, "the plan, as zeroc wrote it")->type_name("FILE");
  declareData(app, options);
  declareTraining(app, options);
  declareOptimizer(app, options);
  declareResults(app, options);
  std::string machine;
  CLI::Option *simulated = app.add_option("--simulate", machine,
                                          "run the plan in virtual time on machines that are described, by name or in a file of JSON "
                                          "(docs/simulation.md): how long steps of all its ranks take, and what they wait for")
                               ->type_name("a100|h100|FILE")
                               ->group("Simulation");
  try {
    zero::parse(app, argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    complainOnce(zero::usageSentence(error, "zerorun")); // every rank reads the same wrong command line
    return 1;
  } catch (const std::exception &error) {
    complainOnce(fmt::format("zerorun: {}", sentenceOf(error)));
    return 1;
  }
  if (options.plan.empty()) {
    complainOnce("zerorun: which plan? Usage: zerorun plan.bin --data FILE --steps N");
    return 1;
  }
  return *simulated ? simulate(app, options, machine) : runProcess(options);
}

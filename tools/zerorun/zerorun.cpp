// zerorun: reads the command line, and nothing else.
#include "runtime/comm/communicator.h"
#include "runtime/train/train.h"
#include "tools/command_line.h"
#include <fmt/format.h>
#include <map>
#include <string>

using namespace zero::runtime;

static Schedule scheduleNamed(const std::string &name) {
  static const std::map<std::string, Schedule> schedules{
      {"constant", Schedule::Constant}, {"cosine", Schedule::Cosine}, {"linear", Schedule::Linear}};
  auto found = schedules.find(name);
  if (found == schedules.end()) throw CLI::ValidationError(fmt::format("--schedule must be constant, cosine or linear, not '{}'", name));
  return found->second;
}

int main(int argc, char **argv) {
  TrainOptions options;
  CLI::App app("Trains what zeroc compiled. Start it alone, or one process per rank: mpirun -np N zerorun plan.bin …, srun --mpi=pmix, torchrun\n"
               "--no-python, or with RANK, WORLD_SIZE and MASTER_ADDR in the environment.",
               "zerorun");
  app.option_defaults()->always_capture_default();
  auto notBuilt = [&](const char *flag) {
    app.add_option_function<std::string>(
        flag, [flag](const std::string &) { throw CLI::ValidationError(fmt::format("{} is not built yet", flag)); }, "not built yet");
  };
  app.add_option("plan", options.plan, "the plan, as zeroc wrote it");
  app.add_option("--data", options.data,
                 ".safetensors or .npz (one tensor per input, samples first), .bin (uint16 tokens), .u32.bin, .txt (bytes)")
      ->type_name("FILE");
  app.add_option("--steps", options.steps, "updates of the whole run")->check(zero::wholeNumber(0, 1000000000000000));
  app.add_option("--lr", options.lr, "peak learning rate")->check(zero::realNumber);
  app.add_option_function<std::string>(
         "--schedule", [&](const std::string &name) { options.schedule = scheduleNamed(name); },
         "constant, cosine or linear: how the learning rate goes on after warm-up")
      ->default_str("constant");
  app.add_option("--warmup", options.warmup, "updates over which the learning rate rises")->check(zero::wholeNumber(0));
  app.add_option("--weight-decay", options.weightDecay, "decoupled for AdamW [AdamW 0.01, SGD 0]")->check(zero::realNumber);
  app.add_option("--betas", options.betas, "A,B for AdamW [0.9,0.999]; A is the momentum of SGD [0]")
      ->delimiter(',')
      ->check(zero::realNumber)
      ->default_str("")
      ->expected(1, 2)
      ->allow_extra_args(false);
  app.add_option("--eps", options.eps, "AdamW's epsilon [1e-8]")->check(zero::realNumber);
  app.add_option("--clip", options.clip, "largest global gradient norm [0: no clipping]")->check(zero::realNumber);
  app.add_option("--seed", options.seed, "of all random numbers of training [0]")->check(zero::wholeNumber(0));
  app.add_option("--metrics", options.metrics, "one object a line for every step")->type_name("FILE");
  app.add_option("--gradients", options.gradients, ".safetensors: full gradients of the first step, by parameter name")->type_name("FILE");
  app.add_option("--checkpoint", options.checkpoint, "a checkpoint at the end of the run, and on Ctrl-C")->type_name("DIR");
  app.add_option("--every", options.every, "steps between checkpoints")->check(zero::wholeNumber(1));
  app.add_option("--resume", options.resume,
                 "go on from its newest checkpoint; from the start if it is the folder of --checkpoint and holds none")
      ->type_name("DIR");
  app.add_option("--export", options.exportTo, ".safetensors or .onnx: trained weights, original names and layouts")->type_name("FILE");
  app.add_option("--eval-data", options.evalData, "held-out samples; their loss is reported at the end of the run")->type_name("FILE");
  app.add_option("--eval-every", options.evalEvery, "steps between evaluations")->check(zero::wholeNumber(1));
  app.add_option("--threads", options.threads, "threads of this rank [as many as it may use]")
      ->check(zero::wholeNumber(1, 4096))
      ->default_str("");
  app.add_option("--trace", options.trace, ".json: what every lane did in the first steps, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  notBuilt("--disk-path");
  notBuilt("--simulate");
  try {
    zero::parse(app, argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    complainOnce(zero::usageSentence(error, "zerorun")); // every rank reads the same wrong command line
    return 1;
  }
  if (options.plan.empty()) {
    complainOnce("zerorun: which plan? Usage: zerorun plan.bin --data FILE --steps N");
    return 1;
  }
  return runProcess(options);
}

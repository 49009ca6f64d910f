// zerorun: reads the command line, and nothing else.
#include "runtime/train/train.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <map>

using namespace zero::runtime;

int main(int argc, char **argv) {
  TrainOptions options;
  CLI::App app("Trains what zeroc compiled. Start it alone, or one process per rank: mpirun -np N zerorun plan.bin …", "zerorun");
  app.option_defaults()->always_capture_default();
  auto notBuilt = [&](const char *flag) {
    app.add_option_function<std::string>(flag, [flag](const std::string &) { throw CLI::ValidationError(fmt::format("{} is not built yet", flag)); },
                                         "not built yet");
  };
  app.add_option("plan", options.plan, "the plan, as zeroc wrote it")->required();
  app.add_option("--data", options.data, ".safetensors or .npz (one tensor per input, samples first), .bin (uint16 tokens), .u32.bin, .txt (bytes)");
  app.add_option("--steps", options.steps, "updates of the whole run");
  app.add_option("--lr", options.lr, "peak learning rate");
  std::map<std::string, Schedule> schedules{{"constant", Schedule::Constant}, {"cosine", Schedule::Cosine}, {"linear", Schedule::Linear}};
  app.add_option("--schedule", options.schedule, "how the learning rate goes on after warm-up")
      ->transform(CLI::CheckedTransformer(schedules))
      ->default_str("constant");
  app.add_option("--warmup", options.warmup, "updates over which the learning rate rises");
  app.add_option("--weight-decay", options.weightDecay, "decoupled for AdamW [AdamW 0.01, SGD 0]");
  app.add_option("--betas", options.betas, "A,B for AdamW [0.9,0.999]; A is the momentum of SGD [0]")->delimiter(',')->expected(1, 2)->allow_extra_args(false);
  app.add_option("--eps", options.eps, "AdamW's epsilon [1e-8]");
  app.add_option("--clip", options.clip, "largest global gradient norm [0: no clipping]");
  app.add_option("--seed", options.seed, "of all random numbers of training [0]");
  app.add_option("--metrics", options.metrics, "FILE.jsonl: one object a line for every step");
  app.add_option("--gradients", options.gradients, "FILE.safetensors: full gradients of the first step, by parameter name");
  app.add_option("--checkpoint", options.checkpoint, "DIR: a checkpoint at the end of the run, and on Ctrl-C");
  app.add_option("--every", options.every, "steps between checkpoints");
  app.add_option("--resume", options.resume, "DIR: go on from its newest checkpoint");
  app.add_option("--export", options.exportTo, "FILE.safetensors or FILE.onnx: trained weights, original names and layouts");
  app.add_option("--eval-data", options.evalData, "held-out samples; their loss is reported at the end of the run");
  app.add_option("--eval-every", options.evalEvery, "steps between evaluations");
  app.add_option("--threads", options.threads, "threads of this rank [as many as it may use]")->check(CLI::PositiveNumber);
  app.add_option("--trace", options.trace, "FILE.json: what every lane did in the first steps, for Perfetto or chrome://tracing");
  notBuilt("--disk-path");
  notBuilt("--simulate");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    fmt::print(stderr, "zerorun: {}\n", error.what());
    return 1;
  }
  return runProcess(options);
}

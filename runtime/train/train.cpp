#include "runtime/train/train.h"
#include "runtime/checkpoint/export.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/checkpoint/initial.h"
#include "runtime/comm/patience.h"
#include "runtime/data/show.h"
#include "runtime/engine/engine.h"
#include "runtime/plan/error.h"
#include "runtime/process/signals.h"
#include "runtime/process/streams.h"
#include "runtime/report/metrics.h"
#include "runtime/report/progress.h"
#include "runtime/train/agreement.h"
#include "runtime/train/evaluate.h"
#include "runtime/train/resume.h"
#include "runtime/train/same_files.h"
#include "runtime/train/setup.h"
#include "runtime/train/trace_file.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

using Clock = std::chrono::steady_clock;

class Run {
public:
  Run(const TrainOptions &options, Setup &setup, Device &device, CommunicatorFactory &factory, Communicator &communicator)
      : options(options), setup(setup), plan(setup.file.plan),
        engine(setup.file, device, factory, {setup.programs.used(), options.trace.has_value(), setup.groups.of}),
        rank{plan, static_cast<uint64_t>(communicator.rank()), [this](const plan::Ref &ref) { return engine.hostPointer(ref); },
             communicator},
        leads(communicator.rank() == 0) {
    start(device.threads());
  }

  int train() {
    if (leads) // mpirun gives its ranks a terminal even where its own output is a file, so several ranks always write a log.
      line = std::make_unique<ProgressLine>(stdout, plan.world() == 1 && ::isatty(::fileno(stdout)));
    announce();
    startGradients();
    int stop = 0;
    uint64_t saved = UINT64_MAX;
    while (at.step < setup.steps && !stop) {
      StepRecord record = step();
      std::string diverged = divergence(record);
      stop = agreed(diverged.empty() ? wish() : kDiverged);
      if (stop == kDiverged) {
        report(record);
        endDiverged(diverged, saved);
      }
      if (!stop && evaluates()) { // who asks to stop may not have the time that an evaluation takes
        record.evalLoss = evaluateNow();
        stop = agreed(wish());
      }
      report(record);
      if (options.checkpoint && (stop || at.step == setup.steps || (options.every && at.step % *options.every == 0))) {
        save();
        saved = at.step;
      }
    }
    if (setup.steps == 0 && setup.programs.eval >= 0) {
      std::optional<double> loss = evaluateNow();
      say(loss ? fmt::format("held-out loss {:.6f}", *loss) : "stopped before the held-out loss was known");
      if (!loss) return 128 + agreed(wish());
    }
    if (options.trace) trace.write(rank, *options.trace);
    if (stop && at.step < setup.steps) {
      std::string where = fmt::format("stopped after step {} of {}{}{}", at.step, setup.steps,
                                      saved == at.step ? fmt::format("; go on with --resume {}", *options.checkpoint)
                                                       : "; nothing was saved, because --checkpoint was not given",
                                      options.exportTo ? "; --export was not written" : "");
      if (stop == kUnwritten) endUnwritten("; " + where);
      say(where);
      return 128 + stop;
    }
    if (options.exportTo) {
      together(rank.communicator, [&] { requireWhole("it is not exported"); });
      exportWeights(rank, *options.exportTo);
      say(fmt::format("wrote {}", *options.exportTo));
    }
    if (options.metrics && agreed(wish()) == kUnwritten) endUnwritten(""); // the line of the last step
    return 0;
  }

  // Before the process ends without its destructors: what is half written is removed.
  void giveUp() { gradients.reset(); }

private:
  static constexpr int kDiverged = 255, kUnwritten = 254; // above every signal

  // What this rank would do after a step: stop for a signal or as for one (nobody reads any more what it says, as in `zerorun | head`),
  // stop because a result cannot be written, or go on (0).
  int wish() const {
    if (!unwritten.empty()) return kUnwritten;
    return line && line->failure() == EPIPE ? SIGPIPE : interruption();
  }

  // What all ranks do after a step: the wish of one of them, kDiverged, or 0 to go on.
  int agreed(int mine) { return largest(rank.communicator, static_cast<uint8_t>(mine)); }

  void start(int threads) {
    if (!setup.candidates.empty()) at = resume(rank, setup);
    together(rank.communicator, [&] {
      if (setup.resumedFrom)
        checkResumed();
      else
        initialiseParameters(rank, threads), at.seed = options.seed.value_or(0), at.shuffled = options.shuffle;
      if (setup.feeder && at.shuffled) setup.feeder->shuffle(at.seed);
      if (options.metrics && leads)
        metrics = std::make_unique<Metrics>(*options.metrics, setup.resumedFrom ? std::optional(at.step) : std::nullopt);
    });
    noteSettings();
    lastSaved = setup.resumedFrom;
    // A run that was killed before it had removed older ones.
    if (leads && options.checkpoint && setup.damaged.empty()) tidy();
  }

  void noteSettings() {
    Settings settings = hyperSettings(plan, options, setup.hyper);
    if (setup.resumedFrom) changed = changes(at.settings, settings);
    at.settings = std::move(settings);
  }

  void checkResumed() const {
    if (options.shuffle && !at.shuffled)
      throw Error(
          fmt::format("--shuffle: checkpoint '{}' has read its samples in the order of the file; leave it out to go on with that run",
                      *setup.resumedFrom));
    if (options.seed && *options.seed != at.seed)
      throw Error(fmt::format("--seed {} differs from the seed {} of checkpoint '{}'; leave it out to go on with that run", *options.seed,
                              at.seed, *setup.resumedFrom));
    if (setup.steps > 0 && at.step > setup.steps)
      throw Error(fmt::format("checkpoint '{}' has already made {} steps; --steps {} counts the whole run", *setup.resumedFrom, at.step,
                              setup.steps));
  }

  void announce() {
    if (options.resume && !setup.resumedFrom) say(fmt::format("no checkpoint in {} yet: the run starts at its beginning", *options.resume));
    if (setup.resumedFrom)
      say(fmt::format("resumed from {} at step {}{}", *setup.resumedFrom, at.step,
                      setup.steps > 0 && at.step == setup.steps ? ", the last one: nothing is left to train" : ""));
    for (const std::string &sentence : changed) say(sentence);
    say(fmt::format("{} bytes of memory per rank ({:.1f} MiB), as planned", engine.allocatedBytes(),
                    static_cast<double>(engine.allocatedBytes()) / (1 << 20)));
    if (setup.feeder && leads) sayData();
    for (const std::string &report : setup.groups.report) say(report);
    if (setup.evalFeeder)
      if (uint64_t left = setup.evalFeeder->samples() % setup.evalFeeder->globalBatch())
        say(fmt::format("{} of {} samples in '{}' make no whole batch of {} and are left out", left, setup.evalFeeder->samples(),
                        setup.evalData->path(), setup.evalFeeder->globalBatch()));
  }

  // What the model is about to read, so that what is not meant is seen before it is trained.
  void sayData() {
    say(fmt::format("{} samples in '{}', {} per step{}", setup.feeder->samples(), setup.data->path(), setup.feeder->globalBatch(),
                    at.shuffled ? ", in another order every epoch" : ""));
    if (!setup.warning.empty()) warn(setup.warning);
    if (options.showBatch) say("the next batch begins with " + describeSample(plan, *setup.data, setup.feeder->sampleAt(at.position)));
  }

  void startGradients() {
    if (!options.gradients || at.step >= setup.steps) return;
    gradients = std::make_unique<GradientFile>(rank, *options.gradients);
    engine.onUpdate([this](const plan::Update &update, const float *gradient) { gradients->add(update, gradient); });
  }

  StepRecord step() {
    auto begin = Clock::now();
    StepRecord record;
    record.steps = setup.steps;
    record.lr = learningRate(options.schedule, options.lr, at.step, setup.steps, options.warmup);
    writeHyper(record.lr);
    engine.resetStats();
    Turn turn{at.position, at.step, 0, at.seed, setup.feeder->scales(setup.feeder->divisors(at.position))};
    double loss = 0;
    for (uint32_t program : setup.programs.micros) {
      setup.feeder->fill(turn, rank.rank, rank.locate);
      engine.run(program);
      loss += scalar(plan.programs(static_cast<int>(program)).loss());
      ++turn.micro;
    }
    at.position += setup.feeder->globalBatch();
    record.step = ++at.step;
    record.loss = static_cast<float>(loss);
    if (const plan::Ref &norm = plan.programs(static_cast<int>(setup.programs.micros.back())).gradient_norm(); norm.bytes() > 0)
      record.gradientNorm = std::abs(std::sqrt(scalar(norm))); // no "-nan"
    record.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    uint64_t tokens = sampleTokens(plan);
    record.countsTokens = tokens > 0;
    record.perSecond = static_cast<double>(std::max<uint64_t>(tokens, 1) * setup.feeder->globalBatch()) / record.seconds;
    record.epoch = static_cast<double>(at.position) / static_cast<double>(setup.feeder->samples());
    for (size_t lane = 0; lane < record.laneBytes.size(); ++lane) record.laneBytes[lane] = engine.stats()[lane].bytes;
    record.memoryBytes = engine.allocatedBytes();
    if (gradients) {
      engine.onUpdate(nullptr);
      gradients->finish();
      gradients.reset();
    }
    if (options.trace) trace.collect(engine, plan);
    return record;
  }

  void writeHyper(double lr) {
    for (size_t group = 0; group < setup.groups.list.size(); ++group) {
      std::array<float, 16> values = hyperInput(setup.hyper, setup.groups.list[group], lr, at.step);
      if (group > 0) std::memcpy(engine.hyper(static_cast<uint32_t>(group)), values.data(), sizeof values);
      for (const plan::Input &input : plan.inputs())
        if (group == 0 && input.role() == plan::Input::HYPER) std::memcpy(rank.locate(input.ref()), values.data(), sizeof values);
    }
  }

  bool evaluates() const {
    if (setup.programs.eval < 0) return false;
    return at.step == setup.steps || (options.evalEvery && at.step % *options.evalEvery == 0);
  }

  std::optional<double> evaluateNow() {
    return evaluate(engine, plan, static_cast<uint32_t>(setup.programs.eval), *setup.evalFeeder, rank.locate, at.step, at.seed,
                    [this] { return agreed(wish()) == 0; });
  }

  void report(const StepRecord &record) {
    if (line) line->show(record);
    if (!metrics) return;
    try {
      metrics->write(record);
    } catch (const Error &error) { // the run ends, but not without its checkpoint
      unwritten = error.what();
      metrics.reset();
    }
  }

  [[noreturn]] void endUnwritten(const std::string &where) {
    line.reset(); // ends the line on the terminal
    if (!leads) throw Stopped();
    throw StoppedWith(unwritten + where);
  }

  // What of a step is no finite number, or nothing.
  static std::string divergence(const StepRecord &record) {
    if (!std::isfinite(record.loss)) return fmt::format("the loss of step {} is {}", record.step, record.loss);
    if (record.gradientNorm && !std::isfinite(*record.gradientNorm))
      return fmt::format("the gradient's norm in step {} is {}", record.step, *record.gradientNorm);
    return "";
  }

  // The parameters are lost: every further step would be a waste, and a checkpoint would replace a good one.
  [[noreturn]] void endDiverged(const std::string &why, uint64_t saved) {
    line.reset(); // ends the line on the terminal
    if (!leads) throw Stopped();
    throw StoppedWith(fmt::format("{}, so the run ends; {}a smaller --lr, more --warmup or --clip may help", why,
                                  saved != UINT64_MAX ? fmt::format("step {} is saved in {}; ", saved, *options.checkpoint) : ""));
  }

  void save() {
    // Loss and norm are from before the update that made these numbers.
    together(rank.communicator, [&] { requireWhole("nothing of it is saved"); });
    lastSaved = saveCheckpoint(rank, *options.checkpoint, at, lastSaved);
    if (leads) tidy();
  }

  // What cannot be removed is in nobody's way.
  void tidy() {
    auto goOn = [](const std::string &sentence) { complain(fmt::format("zerorun: {}; the run goes on", sentence)); };
    for (const std::string &damaged : std::exchange(setup.damaged, {})) { // one of these would count as a whole one, or be the newest
      std::error_code gone;
      bool here = fs::equivalent(fs::path(damaged).parent_path(), *options.checkpoint, gone) && fs::exists(damaged, gone);
      if (!here || fs::equivalent(damaged, *lastSaved, gone)) continue; // the same step was saved again
      try {
        setAside(damaged);
      } catch (const Error &error) {
        goOn(error.what());
      }
    }
    for (const std::string &sentence : removeOlder(*options.checkpoint, options.keep.value_or(2))) goOn(sentence);
  }

  void requireWhole(const char *outcome) {
    try {
      requireFinite(rank);
    } catch (const Error &error) {
      throw Error(fmt::format("{} after step {}, so {}{}; a smaller --lr, more --warmup or --clip may help", error.what(), at.step, outcome,
                              lastSaved ? fmt::format(", and '{}' stays the last checkpoint", *lastSaved) : ""));
    }
  }

  void say(const std::string &sentence) {
    if (line) line->say(sentence);
  }

  static void warn(const std::string &sentence) {
    std::fflush(stdout);
    fmt::print(stderr, "zerorun: warning: {}\n", sentence);
  }

  float scalar(const plan::Ref &ref) const { return *static_cast<const float *>(engine.hostPointer(ref)); }

  const TrainOptions &options;
  Setup &setup;
  const plan::Plan &plan;
  Engine engine;
  Rank rank;
  bool leads;
  Progress at;
  std::vector<std::string> changed; // sentences about what is not as in the run that is resumed
  std::unique_ptr<Metrics> metrics;
  std::string unwritten; // why metrics cannot be written, once they cannot
  std::unique_ptr<ProgressLine> line;
  std::unique_ptr<GradientFile> gradients;
  std::optional<std::string> lastSaved; // checkpoint
  TraceFile trace;
};

void complainAlone(const std::string &sentence, const CommunicatorFactory &factory) {
  std::fflush(stdout);
  complain(fmt::format("zerorun: {}{}", factory.world() > 1 ? fmt::format("rank {}: ", factory.rank()) : "", sentence));
}

// All ranks that wait give up at about the same time, and each has its own to say: none ends the others before.
void letOthersSpeak() { std::this_thread::sleep_for(std::chrono::seconds(2)); }

} // namespace

int train(const TrainOptions &options, CommunicatorFactory &factory) {
  std::unique_ptr<Communicator> communicator = factory.create();
  Setup setup;
  std::unique_ptr<Device> device;
  bool several = factory.world() > 1;
  if (several) { // before any of it is used
    requireSame(*communicator, flagSettings(options));
    requireSame(*communicator, inputFiles(options));
  }
  together(*communicator, [&] {
    prepare(options, factory.world(), setup);
    device = setup.device->make({options.threads, factory.ranksHere()});
    device->requireTarget(setup.file.plan.target());
  });
  together(*communicator, [&] {
    if (factory.rank() == 0) tryResults(options, setup.file.plan);
  });
  chooseCheckpoints(options, *communicator, setup);
  if (several) {
    requireSame(*communicator, stateFiles(options, setup));
    requireSharedFolders(*communicator, options);
  }
  catchInterrupts(factory.world() == 1);
  std::optional<Run> run; // outlives a failure: the others may be waiting inside the engine's communicators
  try {
    run.emplace(options, setup, *device, factory, *communicator);
    factory.closeListeners();
    return run->train();
  } catch (const Stopped &) {
    throw;
  } catch (const StoppedWith &) {
    throw;
  } catch (const TimedOut &error) {
    complainAlone(error.what(), factory);
    letOthersSpeak();
  } catch (const std::bad_alloc &) {
    complainAlone("this process cannot get the memory it needs", factory);
  } catch (const std::exception &error) {
    complainAlone(error.what(), factory);
  }
  if (run) run->giveUp();
  factory.abort();
  return 1; // not reached
}

int runProcess(const TrainOptions &options) {
  std::unique_ptr<CommunicatorFactory> factory;
  PatienceLimits limits;
  limits.giveUp = std::chrono::seconds(options.timeout);
  setPatience(limits);
  try {
    factory = connect();
  } catch (const RankError &error) {
    complain(fmt::format("zerorun: {}", error.what()));
    return 1;
  } catch (const std::exception &error) {
    complainOnce(fmt::format("zerorun: {}", error.what()));
    return 1;
  }
  // A launcher must learn of a refusal from abort(), not from exit statuses: those it may confuse when all ranks end at once.
  try {
    int status = train(options, *factory);
    factory->finalize();
    return status;
  } catch (const Stopped &) {
    factory->awaitAbort();
  } catch (const std::exception &error) {
    std::fflush(stdout);
    complain(fmt::format("zerorun: {}", error.what()));
    if (dynamic_cast<const TimedOut *>(&error)) letOthersSpeak();
    factory->abort();
  }
  return 1; // not reached
}

} // namespace zero::runtime

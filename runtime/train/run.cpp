#include "runtime/train/run.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/initial.h"
#include "runtime/process/signals.h"
#include "runtime/train/agreement.h"
#include "runtime/train/evaluate.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/resume.h"
#include "runtime/train/same_files.h"
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace zero::runtime {
namespace {

// What of a step is no finite number, or nothing.
std::string divergence(const StepRecord &record, const Progress &at) {
  if (at.scale && at.scale->value == 0)
    return fmt::format("the gradient of step {} is not finite, and the loss scale is 1 already", record.step);
  if (at.scale && at.scale->good == 0 && record.gradientNorm && !std::isfinite(*record.gradientNorm)) return ""; // skipped
  float loss = std::isnan(record.loss) ? std::abs(record.loss) : record.loss;                                    // no "-nan"
  if (!std::isfinite(loss)) return fmt::format("the loss of step {} is {}", record.step, loss);
  if (record.gradientNorm && !std::isfinite(*record.gradientNorm))
    return fmt::format("the gradient's norm in step {} is {}", record.step, *record.gradientNorm);
  return "";
}

} // namespace

Run::Run(const TrainOptions &options, Setup &setup, Device &device, CommunicatorFactory &factory, Communicator &communicator)
    : options(options), setup(setup), plan(setup.file.plan), device(device),
      engine(setup.file, device, factory, {setup.programs.used(), options.trace.has_value(), setup.groups.of}),
      rank{plan, static_cast<uint64_t>(communicator.rank()), engine, communicator}, leads(communicator.rank() == 0),
      runs(engine, plan, setup.groups.list.size()), trainingStep(options, setup, runs, engine, rank) {
  start(device.threads());
}

void Run::start(int threads) {
  for (std::optional<Feeder> *feeder : {&setup.feeder, &setup.evalFeeder})
    if (*feeder) (*feeder)->readWith(threads);
  Fill fill = setup.candidates.empty() ? Fill::All : Fill::Frozen;
  collectively(rank.communicator, [&] { frozen = initialiseParameters(rank, threads, fill); });
  shareSums(rank.communicator, frozen);
  if (fill == Fill::Frozen) at = resume(rank, frozen, setup);
  collectively(rank.communicator, [&] {
    if (setup.resumedFrom)
      checkResumed(options, setup, at);
    else
      at.seed = options.seed.value_or(0), at.shuffled = options.shuffle;
    if (setup.feeder && at.shuffled) setup.feeder->shuffle(at.seed);
    if (options.metrics && leads) {
      std::optional<uint64_t> resumed;
      if (setup.resumedFrom) resumed = at.step;
      if (at.step == setup.steps) resumed = UINT64_MAX; // no step will be made in place of another
      metrics = std::make_unique<Metrics>(*options.metrics, resumed, /*stays=*/options.resume.has_value());
    }
  });
  startLossScale(plan, options, at);
  uint64_t keep = options.keep.value_or(keptBy(at.settings));
  Settings settings = hyperSettings(plan, options, setup.hyper);
  settings.emplace_back("--keep", fmt::format("{}", keep));
  if (setup.feeder) { // what the order of samples and their number in a step follow from
    settings.emplace_back("--labels", textOf(options.reading.labels));
    settings.emplace_back("the number of samples in --data", fmt::format("{}", setup.feeder->samples()));
    settings.emplace_back("the number of samples in a step", fmt::format("{}", setup.feeder->globalBatch()));
  }
  if (setup.device->tune) settings.emplace_back("the table of algorithms beside the plan", textOf(setup.measured)); // they decide bits
  if (setup.resumedFrom && at.step < setup.steps) changed = changes(at.settings, settings);
  at.settings = std::move(settings);
  checkpoints.emplace(options, setup, rank, frozen, keep);
}

int Run::train() {
  if (leads) // mpirun gives its ranks a terminal even where its own output is a file, so several ranks always write a log.
    line = std::make_unique<ProgressLine>(stdout, plan.world() == 1 && ::isatty(::fileno(stdout)));
  announce();
  if (options.gradients && at.step < setup.steps) trainingStep.recordGradients(*options.gradients, at);
  begun = at.step;
  int stop = makeSteps();
  if (begun >= setup.steps && setup.programs.eval >= 0) { // nothing was left to train
    std::optional<double> loss = evaluateNow();
    say(loss ? fmt::format("held-out loss {:.6f}", *loss) : "stopped before the held-out loss was known");
    if (!loss) return 128 + agreed(vote());
  }
  return finish(stop);
}

// Collective. The next step runs while all ranks agree on what came of one, and it is reported. A stop lets it end. Returns what
// stopped the steps: a signal, kUnwritten, or 0.
int Run::makeSteps() {
  int stop = 0;
  uint64_t good = at.step; // samples of the steps before it are; the next one may be begun while a step runs
  while (good < at.step + 2 && agreed(sampleVote(good)) == 0) ++good;
  while (at.step < setup.steps && (!stop || trainingStep.ahead())) {
    if (at.step == good) endAtSample(badSample);
    StepRecord record;
    try {
      record = trainingStep.run(at, stop ? at.step : std::min(nextPause(), good));
    } catch (const BadSample &sample) {
      if (plan.world() > 1) throw; // what was read ahead cannot be read any more: this rank fails alone
      endAtSample(sample.what());
    }
    if (options.trace) trace.collect(engine);
    std::string diverged = divergence(record, at);
    int outcome = agreed(diverged.empty() ? std::max(vote(), sampleVote(good)) : kDiverged);
    if (outcome == kDiverged) {
      report(record);
      endDiverged(diverged);
    }
    if (outcome == kBadSample)
      outcome = 0;
    else
      ++good;
    if (!stop) stop = outcome;
    if (!stop && evaluates(at.step)) { // who asks to stop may not have the time that an evaluation takes
      record.evalLoss = evaluateNow();
      stop = agreed(vote());
    }
    lacksEvaluation = evaluates(at.step) && !record.evalLoss;
    report(record);
    if (stop && !trainingStep.ahead()) trainingStep.drain();
    if (options.checkpoint && (stop ? !trainingStep.ahead() : saves(at.step))) {
      checkpoints->save(at);
      saved = at.step;
    }
  }
  return stop;
}

// Collective: what the run leaves behind, once the last step is made. Returns the exit status.
int Run::finish(int stop) {
  if (setup.steps > 0) sayTraffic();
  bool stopped = stop && at.step < setup.steps;
  if (options.exportTo && !stopped) {
    collectively(rank.communicator, [&] { checkpoints->requireFinite(at, "it is not exported"); });
    exportWeights(rank, *options.exportTo, options.onlyTrained ? Exported::Trained : Exported::All);
    say(fmt::format("wrote {}", *options.exportTo));
  }
  if (options.trace) trace.write(rank, *options.trace); // where that fails, the weights are not lost
  if (stopped) {
    std::string where = fmt::format("stopped after step {} of {}{}{}", at.step, setup.steps,
                                    saved == at.step ? fmt::format("; go on with --resume {}", *options.checkpoint)
                                                     : "; nothing was saved, because --checkpoint was not given",
                                    options.exportTo ? "; --export was not written" : "");
    if (stop == kUnwritten) endUnwritten("; " + where);
    say(where);
    return 128 + stop;
  }
  if (options.metrics && agreed(vote()) == kUnwritten) endUnwritten(""); // the line of the last step
  if (lacksEvaluation) {
    say(fmt::format("stopped before the held-out loss was known{}",
                    saved == at.step ? fmt::format("; the same run with --resume {} finds it", *options.checkpoint) : ""));
    return 128 + stop;
  }
  return 0;
}

// What this rank would do after a step: stop for a signal or as for one (nobody reads any more what it says, as in `zerorun | head`),
// stop because a result cannot be written, or go on (0).
int Run::vote() const {
  if (!unwritten.empty()) return kUnwritten;
  return line && line->failure() == EPIPE ? SIGPIPE : interruption();
}

// Whether this rank has a sample that ends the run before step number `step`. Of a run of one rank, that step says so itself: of several,
// it would leave the others in the middle of it.
int Run::sampleVote(uint64_t step) {
  if (plan.world() == 1 || step >= setup.steps) return 0;
  try {
    setup.feeder->checkValues(at.position + (step - at.step) * setup.feeder->globalBatch(), rank.rank);
    return 0;
  } catch (const Error &error) {
    badSample = error.what();
    return kBadSample;
  }
}

// What all ranks do after a step: the largest of their votes.
int Run::agreed(int vote) { return largest(rank.communicator, static_cast<uint8_t>(vote)); }

// After which steps the held-out loss is asked for, and which a checkpoint is made of.
bool Run::evaluates(uint64_t step) const {
  if (setup.programs.eval < 0) return false;
  return step == setup.steps || (options.evalEvery && step % *options.evalEvery == 0);
}

bool Run::saves(uint64_t step) const {
  return options.checkpoint && (step == setup.steps || (options.every && step % *options.every == 0));
}

// The step after which the state is needed as it is then: none that follows it may have begun.
uint64_t Run::nextPause() const {
  uint64_t pause = setup.steps;
  auto before = [&](std::optional<uint64_t> every) {
    if (every) pause = std::min(pause, (at.step / *every + 1) * *every);
  };
  if (setup.programs.eval >= 0) before(options.evalEvery);
  if (options.checkpoint) before(options.every);
  return pause;
}

std::optional<double> Run::evaluateNow() {
  return evaluate(runs, static_cast<uint32_t>(setup.programs.eval), *setup.evalFeeder, rank.rank, at.step, at.seed,
                  [this] { return agreed(vote()) == 0; });
}

void Run::report(const StepRecord &record) {
  if (line) line->show(record);
  if (!metrics) return;
  try {
    metrics->write(record);
  } catch (const Error &error) { // the run ends, but not without its checkpoint
    unwritten = error.what();
    metrics.reset();
  }
}

void Run::say(const std::string &sentence) {
  if (line) line->say(sentence);
}

void Run::endUnwritten(const std::string &where) {
  line.reset(); // ends the line on the terminal
  if (!leads) throw ReportedElsewhere();
  throw CollectiveError(unwritten + where);
}

// Collective. `why`: of the ranks that have a bad sample. The steps before it are saved.
void Run::endAtSample(const std::string &why) {
  if (options.checkpoint && at.step > begun && saved != at.step) {
    checkpoints->save(at);
    saved = at.step;
  }
  line.reset(); // ends the line on the terminal
  collectively(rank.communicator, [&] {
    if (why.empty()) return;
    throw Error(saved != UINT64_MAX ? fmt::format("{}; step {} is saved in {}", why, saved, *options.checkpoint) : why);
  });
  throw ReportedElsewhere(); // not reached
}

// The parameters are lost: every further step would be a waste, and a checkpoint would replace a good one.
void Run::endDiverged(const std::string &why) {
  line.reset(); // ends the line on the terminal
  if (!leads) throw ReportedElsewhere();
  bool updated = at.step > 1; // what ends the first step was in the data or in the weights that it began with
  throw CollectiveError(fmt::format("{}, so the run ends; {}{}", why,
                                    saved != UINT64_MAX ? fmt::format("step {} is saved in {}; ", saved, *options.checkpoint) : "",
                                    updated ? "a smaller --lr, more --warmup or --clip may help"
                                            : "nothing was updated before it: look at the data and at the model's weights"));
}

} // namespace zero::runtime

#include "runtime/train/training_step.h"
#include "runtime/train/loss_scale.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace zero::runtime {

TrainingStep::TrainingStep(const TrainOptions &options, const Setup &setup, Runs &runs, Engine &engine, const Rank &rank)
    : options(options), setup(setup), plan(setup.file.plan), runs(runs), engine(engine), rank(rank) {}

void TrainingStep::recordGradients(const std::string &path, const Progress &at) {
  gradients = std::make_unique<GradientFile>(rank, path, at.scale ? 1.0f / static_cast<float>(at.scale->value) : 1.0f);
  addGradient = [this](const plan::Step &update) { gradients->add(update); };
}

void TrainingStep::feed(const Progress &at, const Hyper &hyper) try {
  if (micro == 0) {
    scales = setup.feeder->scales(setup.feeder->divisors(position));
    for (float &scale : scales) scale *= static_cast<float>(hyper.lossScale);
  }
  setup.feeder->fill({position, step, micro, at.seed, scales}, rank.rank, runs.inputs());
} catch (const Error &error) {
  throw BadSample(error.what());
}

void TrainingStep::submit(const Progress &at) {
  Hyper hyper = setup.hyper;
  if (at.scale) hyper.lossScale = static_cast<double>(at.scale->value);
  feed(at, hyper);
  double lr = learningRate(options.schedule, options.lr, step, setup.steps, options.warmup);
  for (size_t group = 0; group < setup.groups.list.size(); ++group)
    runs.setHyper(group, hyperInput(hyper, setup.groups.list[group], lr, step - at.skipped));
  runs.submit(setup.programs.micros[micro], gradients && step == *first ? &addGradient : nullptr);
  if (!isLast(micro++)) return;
  position += setup.feeder->globalBatch();
  ++step, micro = 0;
}

StepRecord TrainingStep::run(Progress &at, uint64_t until) {
  if (!first) first = step = at.step, position = at.position;
  if (plan.scales_loss() || options.drain) until = 0; // the scale, and whether the update is one, are known when this step is complete
  Clock::time_point begin = runs.any() ? ended : Clock::now();
  engine.resetStats();
  LossTerms terms{};
  Runs::Result last;
  for (size_t part = 0; part < setup.programs.micros.size(); ++part) {
    while (!runs.full() && !failure && step < std::max(until, at.step + 1)) try {
        submit(at);
      } catch (...) { // may be of the next step, and this one is still to be completed
        failure = std::current_exception();
      }
    if (!runs.any()) std::rethrow_exception(failure);
    last = runs.finish();
    for (size_t i = 0; i < terms.size(); ++i) terms[i] += last.losses[i] / (at.scale ? static_cast<double>(at.scale->value) : 1.0);
  }
  ended = last.completion.end;
  StepRecord record;
  record.steps = setup.steps;
  record.lr = learningRate(options.schedule, options.lr, at.step, setup.steps, options.warmup);
  at.position += setup.feeder->globalBatch();
  record.step = ++at.step;
  record.loss = static_cast<float>(std::accumulate(terms.begin(), terms.end(), 0.0));
  for (int i = 0; plan.losses_size() > 1 && i < plan.losses_size(); ++i) {
    const plan::Loss &loss = plan.losses(i);
    record.losses.push_back(static_cast<float>(terms[static_cast<size_t>(i)] / (loss.has_weight() ? loss.weight() : 1)));
  }
  if (plan.programs(static_cast<int>(setup.programs.micros.back())).gradient_norm().bytes() > 0)
    record.gradientNorm = std::abs(std::sqrt(last.squaredNorm)); // no "-nan"
  if (at.scale) {
    record.lossScale = at.scale->value;
    record.gradientNorm = *record.gradientNorm / static_cast<float>(at.scale->value);
    adjustLossScale(at, std::isfinite(last.squaredNorm));
  }
  record.skipped = at.skipped;
  record.seconds = std::chrono::duration<double>(ended - begin).count();
  uint64_t tokens = sampleTokens(plan);
  record.countsTokens = tokens > 0;
  record.perSecond = static_cast<double>(std::max<uint64_t>(tokens, 1) * setup.feeder->globalBatch()) / record.seconds;
  record.epoch = static_cast<double>(at.position) / static_cast<double>(setup.feeder->samples());
  for (size_t lane = 0; lane < record.laneBytes.size(); ++lane) record.laneBytes[lane] = engine.stats()[lane].bytes;
  record.memoryBytes = engine.allocatedBytes();
  if (gradients) {
    gradients->finish();
    gradients.reset();
  }
  return record;
}

bool TrainingStep::ahead() const { return failure || (runs.any() && setup.programs.micros.size() == 1); }

void TrainingStep::drain() {
  while (runs.any()) runs.finish();
}

} // namespace zero::runtime

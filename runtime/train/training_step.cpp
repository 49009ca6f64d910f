#include "runtime/train/training_step.h"
#include "runtime/train/evaluate.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

namespace zero::runtime {

TrainingStep::TrainingStep(const TrainOptions &options, const Setup &setup, Engine &engine, const Rank &rank)
    : options(options), setup(setup), plan(setup.file.plan), engine(engine), rank(rank), inputs(plan) {}

void TrainingStep::recordGradients(const std::string &path) {
  gradients = std::make_unique<GradientFile>(rank, path);
  engine.onUpdate([this](const plan::Step &update) { gradients->add(update); });
}

StepRecord TrainingStep::run(Progress &at) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  StepRecord record;
  record.steps = setup.steps;
  record.lr = learningRate(options.schedule, options.lr, at.step, setup.steps, options.warmup);
  writeHyper(at.step, record.lr);
  engine.resetStats();
  Turn turn{at.position, at.step, 0, at.seed, setup.feeder->scales(setup.feeder->divisors(at.position))};
  LossTerms terms{};
  for (uint32_t program : setup.programs.micros) {
    setup.feeder->fill(turn, rank.rank, inputs);
    inputs.writeTo(engine);
    engine.run(program);
    addLosses(engine, plan.programs(static_cast<int>(program)), terms);
    ++turn.micro;
  }
  at.position += setup.feeder->globalBatch();
  record.step = ++at.step;
  record.loss = static_cast<float>(std::accumulate(terms.begin(), terms.end(), 0.0));
  for (int i = 0; plan.losses_size() > 1 && i < plan.losses_size(); ++i) {
    const plan::Loss &loss = plan.losses(i);
    record.losses.push_back(static_cast<float>(terms[static_cast<size_t>(i)] / (loss.has_weight() ? loss.weight() : 1)));
  }
  if (const plan::Ref &norm = plan.programs(static_cast<int>(setup.programs.micros.back())).gradient_norm(); norm.bytes() > 0)
    record.gradientNorm = std::abs(std::sqrt(engine.scalar(norm))); // no "-nan"
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
  return record;
}

void TrainingStep::writeHyper(uint64_t step, double lr) {
  for (size_t group = 0; group < setup.groups.list.size(); ++group) {
    std::array<float, 16> values = hyperInput(setup.hyper, setup.groups.list[group], lr, step);
    if (group > 0) engine.writeHyper(static_cast<uint32_t>(group), values);
    for (int i = 0; group == 0 && i < plan.inputs_size(); ++i)
      if (plan.inputs(i).role() == plan::Input::HYPER) std::memcpy(inputs.of(i).data(), values.data(), sizeof values);
  }
}

} // namespace zero::runtime

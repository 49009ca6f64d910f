#include "runtime/data/feeder.h"
#include "runtime/base/error.h"
#include "runtime/data/element.h"
#include "runtime/process/in_parts.h"
#include <algorithm>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>

namespace zero::runtime {
namespace {

constexpr uint64_t kPart = uint64_t(4) << 20; // bytes that are worth starting a thread

} // namespace

Feeder::Feeder(const plan::Plan &plan, const Dataset &data, uint64_t micros, const std::string &what)
    : plan(plan), data(data), sampler_{data.samples(), plan.samples(), plan.world(), micros, {}} {
  if (globalBatch() == 0 || samples() < globalBatch())
    throw Error(fmt::format("{} '{}' has {} samples, but one global batch takes {} ({} per rank{}{}); give more, or compile with a "
                            "smaller batch",
                            what, data.path(), samples(), globalBatch(), plan.samples(),
                            plan.world() > 1 ? fmt::format(" x {} ranks", plan.world()) : "",
                            micros > 1 ? fmt::format(" x {} micro-steps", micros) : ""));
  for (const plan::Loss &loss : plan.losses()) terms.push_back({loss.kind(), loss.has_weight() ? loss.weight() : 1, labelsOf(plan, loss)});
  std::map<std::pair<plan::Input::Role, std::string>, int> firsts;
  auto key = [&](int i) { return std::pair(plan.inputs(i).role(), plan.inputs(i).name()); };
  for (int i = 0; i < plan.inputs_size(); ++i)
    if (plan.inputs(i).micro_step() == 0) firsts.emplace(key(i), i);
  for (int i = 0; i < plan.inputs_size(); ++i) sources.push_back(plan.inputs(i).micro_step() == 0 ? i : firsts.at(key(i)));
}

LossDivisors Feeder::divisors(uint64_t start) const {
  LossDivisors divisors{};
  for (size_t i = 0; i < terms.size(); ++i) {
    const Term &term = terms[i];
    uint64_t count = sampler_.world * sampler_.micros;
    if (term.kind == plan::CROSS_ENTROPY) {
      count = 0;
      for (uint64_t s = 0; s < globalBatch(); ++s) count += data.countedLabels(term.labels, sampler_.sample(start, s));
    } else if (term.kind == plan::MSE) {
      count = sampleElements(plan.inputs(term.labels)) * globalBatch();
    }
    divisors[i] = static_cast<double>(count);
  }
  return divisors;
}

LossScales Feeder::scales(const LossDivisors &divisors) const {
  LossScales scales{};
  for (size_t i = 0; i < terms.size(); ++i)
    if (divisors[i] > 0) scales[i] = static_cast<float>(terms[i].weight / divisors[i]);
  return scales;
}

// Threads that meet a bad sample end with it, so the first one of all is told, as if they had been read one after another.
void Feeder::readSamples(int index, const Turn &turn, uint64_t micro, uint64_t rank, std::span<std::byte> to) const {
  uint64_t bytes = sampleElements(plan.inputs(index)) * sizeOf(plan.inputs(index).dtype());
  std::mutex telling;
  uint64_t bad = sampler_.perRank;
  std::exception_ptr failure;
  auto read = [&](uint64_t begin, uint64_t end) {
    uint64_t i = begin;
    try {
      for (; i < end; ++i)
        data.read(sources[static_cast<size_t>(index)], sampler_.sample(turn.start, sampler_.within(micro, rank, i)),
                  to.subspan(i * bytes, bytes));
    } catch (...) {
      std::lock_guard lock(telling);
      if (i < bad) bad = i, failure = std::current_exception();
    }
  };
  inParts(sampler_.perRank, std::max<uint64_t>(kPart / std::max<uint64_t>(bytes, 1), 1), readers, "a thread that reads samples", read);
  if (failure) std::rethrow_exception(failure);
}

void Feeder::checkValues() const {
  checkValues(wholeBatches() * globalBatch(), [](uint64_t i) { return i; });
}

void Feeder::checkValues(uint64_t start, uint64_t rank) const {
  checkValues(sampler_.micros * sampler_.perRank,
              [&](uint64_t i) { return sampler_.sample(start, sampler_.within(i / sampler_.perRank, rank, i % sampler_.perRank)); });
}

void Feeder::checkValues(uint64_t count, const std::function<uint64_t(uint64_t)> &sampleAt) const {
  std::vector<std::byte> values;
  for (int index = 0; index < plan.inputs_size(); ++index) {
    const plan::Input &input = plan.inputs(index);
    bool shared = input.role() == plan::Input::SHARED, sampled = input.role() == plan::Input::DATA || input.role() == plan::Input::LABELS;
    if (input.micro_step() > 0 || !(shared || sampled) || !data.mayRefuse(index)) continue;
    values.resize(shared ? input.ref().bytes() : sampleElements(input) * sizeOf(input.dtype()));
    for (uint64_t i = 0; i < (shared ? 1 : count); ++i) data.read(index, shared ? 0 : sampleAt(i), values);
  }
}

void Feeder::fill(const Turn &turn, uint64_t rank, Inputs &inputs) const {
  for (int index = 0; index < plan.inputs_size(); ++index) {
    const plan::Input &input = plan.inputs(index);
    uint64_t micro = turn.micro + input.micro_step();
    if (micro >= sampler_.micros) continue; // of a training step, and this is evaluation
    std::span<std::byte> dst = inputs.of(index);
    switch (input.role()) {
    case plan::Input::DATA:
    case plan::Input::LABELS:
      readSamples(index, turn, micro, rank, dst);
      break;
    case plan::Input::SHARED:
      data.read(index, 0, dst);
      break;
    case plan::Input::LOSS_SCALE:
      std::memcpy(dst.data(), turn.scales.data(), terms.size() * sizeof(float));
      break;
    case plan::Input::SEED: {
      uint64_t values[2] = {mix(turn.seed ^ mix(turn.step)), sampler_.within(micro, rank, 0)};
      std::memcpy(dst.data(), values, sizeof values);
      break;
    }
    default:
      break; // HYPER: once per step, by the training loop
    }
  }
}

} // namespace zero::runtime

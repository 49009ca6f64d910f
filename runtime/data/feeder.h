// Makes the inputs of one program run: samples, labels, loss scale and seed. (Hyper-parameters: train/hyper.h.)
#pragma once
#include "runtime/data/dataset.h"
#include "runtime/data/inputs.h"
#include "runtime/data/sampler.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/validate.h"
#include <array>
#include <functional>
#include <string>
#include <vector>

namespace zero::runtime {

// Of each of the plan's losses: the number by which its sum over some samples becomes their mean, and what the program
// multiplies it with.
using LossDivisors = std::array<double, plan::kMaxLosses>;
using LossScales = std::array<float, plan::kMaxLosses>;

// Which part of the run a program run is.
struct Turn {
  uint64_t start = 0; // stream position of the global batch's first sample
  uint64_t step = 0;  // updates done before
  uint64_t micro = 0; // micro-step; the first, of a program that holds several
  uint64_t seed = 0;  // of the run
  LossScales scales{};
};

class Feeder {
public:
  // `what` names the flag in messages. Throws if the data set is smaller than one global batch.
  Feeder(const plan::Plan &plan, const Dataset &data, uint64_t micros, const std::string &what);

  // From now on every epoch has an order of its own, drawn from the seed.
  void shuffle(uint64_t seed) { sampler_.shuffled = seed; }

  // From now on this many threads read samples at the same time, where these are large.
  void readWith(int threads) { readers = threads; }

  uint64_t globalBatch() const { return sampler_.globalBatch(); }
  uint64_t samples() const { return sampler_.samples; }
  uint64_t wholeBatches() const { return samples() / globalBatch(); }
  // The data set's sample that stands at stream position `position`.
  uint64_t sampleAt(uint64_t position) const { return sampler_.sample(position, 0); }

  // Of the global batch that starts at stream position `start`: labels that count, elements of the targets, or losses of
  // single ranks. The same on every rank.
  LossDivisors divisors(uint64_t start) const;
  // What makes of the plan's losses the weighted sum of their means. One without labels is 0 and has no gradient.
  LossScales scales(const LossDivisors &divisors) const;

  // Makes every input of role DATA, LABELS, SHARED, LOSS_SCALE and SEED; of the first micro-step alone where batches are of one.
  void fill(const Turn &turn, uint64_t rank, Inputs &inputs) const;

  // Reads what all whole batches take, as far as a value of it may be bad. Throws the sentence of the first one that is.
  void checkValues() const;
  // The same of what this rank takes of the global batch that starts at stream position `start`.
  void checkValues(uint64_t start, uint64_t rank) const;

private:
  // Of samples number sampleAt(0 … count - 1) of the data set.
  void checkValues(uint64_t count, const std::function<uint64_t(uint64_t)> &sampleAt) const;
  void readSamples(int index, const Turn &turn, uint64_t micro, uint64_t rank, std::span<std::byte> to) const;

  struct Term {
    plan::LossKind kind;
    double weight;
    int labels; // plan input, or -1
  };

  const plan::Plan &plan;
  const Dataset &data;
  Sampler sampler_;
  std::vector<Term> terms;  // of the loss
  std::vector<int> sources; // of each plan input, the one of micro-step 0 that takes samples of the same tensor
  int readers = 1;
};

} // namespace zero::runtime

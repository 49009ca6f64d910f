// Fills the inputs of one program run: samples, labels, loss scale and seed. (Hyper-parameters: train/hyper.h.)
#pragma once
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"
#include "runtime/plan/plan.pb.h"
#include <functional>
#include <string>

namespace zero::runtime {

// Where this rank finds the bytes of a Ref: Engine::hostPointer.
using Locate = std::function<void *(const plan::Ref &)>;

// SplitMix64's output function: a bijection that spreads its argument over all 64 bits.
uint64_t mix(uint64_t value);

// Which part of the run a program run is.
struct Turn {
  uint64_t start = 0;   // stream position of the global batch's first sample
  uint64_t step = 0;    // updates done before
  uint64_t micro = 0;   // micro-step
  uint64_t seed = 0;    // of the run
  uint64_t divisor = 1; // Feeder::divisor(start)
};

class Feeder {
public:
  // `what` names the flag in messages. Throws if the data set is smaller than one global batch.
  Feeder(const plan::Plan &plan, const Dataset &data, uint64_t micros, const std::string &what);

  uint64_t globalBatch() const { return sampler_.globalBatch(); }
  uint64_t samples() const { return sampler_.samples; }

  // The number by which a sum over the global batch starting at stream position `start` becomes its mean: labels that
  // count, elements of the targets, or losses of single ranks. The same on every rank.
  uint64_t divisor(uint64_t start) const;

  // Writes every input of role DATA, LABELS, LOSS_SCALE and SEED.
  void fill(const Turn &turn, uint64_t rank, const Locate &locate) const;

private:
  const plan::Plan &plan;
  const Dataset &data;
  Sampler sampler_;
};

} // namespace zero::runtime

// Runs of programs, of which kSubmissions may be under way: while one runs, the host makes what the next one reads and looks at what the
// last one left.
#pragma once
#include "runtime/data/inputs.h"
#include "runtime/engine/engine.h"
#include "runtime/plan/validate.h"
#include <array>
#include <span>
#include <vector>

namespace zero::runtime {

// Of each of the plan's losses, times its weight.
using LossTerms = std::array<double, plan::kMaxLosses>;

class Runs {
public:
  // `groups`: of parameters that have hyper-parameters of their own, the first included.
  Runs(Engine &engine, const plan::Plan &plan, size_t groups = 1);
  ~Runs() { abandon(); } // they write here
  Runs(const Runs &) = delete;
  Runs &operator=(const Runs &) = delete;

  bool any() const { return submitted != finished; }
  bool full() const { return submitted - finished == kSubmissions; }

  // What the next run reads: the host's until it is submitted.
  Inputs &inputs() { return slots[submitted % kSubmissions].inputs; }
  void setHyper(size_t group, const std::array<float, 16> &values);
  // Unless full(). `beforeUpdate` outlives the run.
  void submit(uint32_t program, const UpdateHook *beforeUpdate = nullptr);

  struct Result {
    LossTerms losses{};    // what the program has left of them, summed over its micro-steps
    float squaredNorm = 0; // if the program has it
    Completion completion;
  };
  // Of the oldest run that is under way.
  Result finish();
  // Waits for those under way, whatever comes of them.
  void abandon() noexcept;

private:
  struct Slot {
    HostMemory memory; // of all that travels
    Inputs inputs;
    std::span<std::array<float, 16>> hyper; // of each group; the first one's is an input
    std::span<float> losses;                // of each of the program's micro-steps
    std::span<float> squaredNorm;           // one
    std::vector<HostTransfer> writes, reads;
  };
  Slot makeSlot(size_t groups, size_t losses) const;

  Engine &engine;
  const plan::Plan &plan;
  int hyperInput = -1;
  std::vector<Slot> slots;
  uint64_t submitted = 0, finished = 0;
};

} // namespace zero::runtime

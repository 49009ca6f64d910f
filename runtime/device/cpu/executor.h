// Does what an operation says, at once: returns when its result may be read. Operations of different lanes may overlap; none allocates.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/thread_pool.h"

namespace zero::runtime {

class Executor {
public:
  explicit Executor(int threads) : pool(threads) {}
  int threads() const { return pool.threads(); }

  // Before the first attention.
  void prepare(const AttentionLimits &limits) { attentionScratch.prepare(pool.threads(), limits); }

  // `communicator`: that of the lane, if it has collectives.
  void run(const Call &call, Communicator *communicator);

  void launch(const LaunchCall &call);
  void matmul(const MatMulCall &call);
  void attention(const AttentionCall &call) { runtime::attention(pool, attentionScratch, call); }
  void attentionGrad(const AttentionGradCall &call) { runtime::attentionGrad(pool, attentionScratch, call); }
  void copy(const CopyCall &call);
  void disk(const DiskCall &call); // on the calling thread alone, which mostly waits
  void fill(const FillCall &call);

private:
  template <typename Body> void forPieces(uint64_t bytes, Body &&body);

  AttentionScratch attentionScratch;
  ThreadPool pool; // last: its threads end before what they use
};

} // namespace zero::runtime

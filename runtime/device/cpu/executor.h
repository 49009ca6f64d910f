// Does what an operation says, at once: returns when its result may be read. Operations of different lanes may overlap; none allocates.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/half/products.h"
#include "runtime/device/cpu/launch.h"
#include "runtime/device/cpu/thread_pool.h"

namespace zero::runtime {

class Executor {
public:
  // `way`: how products of bf16 are made.
  explicit Executor(int threads, HalfProducts::Way way = HalfProducts::ways().front()) : halfProducts(way), pool(threads) {}
  int threads() const { return pool.threads(); }

  // Before the first attention and the first product of bf16 or f16.
  void prepare(const Needs &needs);
  // What people should know of how products are done; empty: nothing.
  std::string note() const { return halfProducts.note(); }

  // `communicator`: that of the lane, if it has collectives.
  void run(const Call &call, Communicator *communicator);

  void launch(const LaunchCall &call) { runtime::launch(pool, call); }
  void matmul(const MatMulCall &call);
  void attention(const AttentionCall &call) { runtime::attention(pool, attentionScratch, call); }
  void attentionGrad(const AttentionGradCall &call) { runtime::attentionGrad(pool, attentionScratch, call); }
  void copy(const CopyCall &call);
  void disk(const DiskCall &call); // on the calling thread alone, which mostly waits
  void fill(const FillCall &call);
  void rows(const RowsCall &call); // on the calling thread alone: they are few

private:
  template <typename Body> void forPieces(uint64_t bytes, Body &&body);

  AttentionScratch attentionScratch;
  HalfProducts halfProducts;
  ThreadPool pool; // last: its threads end before what they use
};

} // namespace zero::runtime

// Collectives of a rank's GPU with those of all others, put into streams. It is no Communicator: that returns when the bytes are there, and
// this before they have set out.
//
// One communicator of NCCL serves all lanes. Every rank submits the same operations in the same order, and NCCL runs those of one
// communicator in that order, whatever streams they are in; two communicators could begin in another order on each rank, and wait for each
// other.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/cuda/nccl.h"
#include "runtime/device/cuda/peer_watch.h"
#include "runtime/device/program.h"
#include <vector>

namespace zero::runtime::cuda {

// Each rank gets bytes of all others: those for rank r lie at src + r * stride, those of rank r come to dst + r * bytes. Nothing of the
// own.
struct ExchangeCall {
  Pointer src, dst;
  uint64_t stride, bytes;
};

class Collectives {
public:
  // Collective over all ranks: they find each other through a communicator of the factory. Throws a sentence if they do not.
  explicit Collectives(CommunicatorFactory &factory);
  ~Collectives(); // after a run that ended well: with the other ranks
  Collectives(const Collectives &) = delete;
  Collectives &operator=(const Collectives &) = delete;

  // What is sent lies there, and what comes: NCCL moves it without copies of its own, where the way to the other ranks allows that. The
  // memory outlives this.
  void enroll(Pointer memory, uint64_t bytes);

  void run(const AllGatherOf<Pointer> &call, StreamHandle stream);
  void run(const ExchangeCall &call, StreamHandle stream);
  void run(const ReduceScatterOf<Pointer> &call, StreamHandle stream); // f32, as the next: in NCCL's order
  void run(const AllReduceOf<Pointer> &call, StreamHandle stream);

  // Throws a sentence if another rank can no longer take part. To be asked while results are waited for, which may never come then; `since`
  // is when that began.
  void check(std::chrono::steady_clock::time_point since);
  // What is under way ends, whatever the other ranks do; nothing can be run any more.
  void abort() noexcept;

private:
  const Nccl &nccl;
  int self, world;
  PeerWatch watch;
  NcclHandle handle{};
  std::vector<void *> entries; // of memory that is enrolled
};

} // namespace zero::runtime::cuda

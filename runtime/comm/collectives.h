// The collectives, made of messages between pairs of ranks: what the transports share. Every rank exchanges its part with every
// other one directly, and sums are made here, in rank order (ordered_sum.h), so that all transports give the same bits.
#pragma once
#include "runtime/comm/communicator.h"
#include <atomic>
#include <vector>

namespace zero::runtime {

class MessageCommunicator : public Communicator {
public:
  int rank() const override { return self; }
  int world() const override { return size; }
  void allGather(const void *src, void *dst, uint64_t bytes) override { allGather(src, dst, bytes, "an all-gather"); }
  void reduceScatter(WireType type, const void *src, float *dst, uint64_t count, Staging staging) override;
  void allReduce(float *data, uint64_t count, Staging staging) override;
  void barrier() override;
  void broadcast(void *data, uint64_t bytes, int root) override;
  void interrupt() override { interrupted.store(true, std::memory_order_relaxed); }
  uint64_t bytesSent() const override { return sent.load(std::memory_order_relaxed); }

protected:
  MessageCommunicator(int self, int size) : self(self), size(size), tokens(static_cast<size_t>(size)) {}

  // What a transport does. A collective names its messages, at most one to and one from each peer, all receiving ones first,
  // and then completes them together; `what` names the collective in sentences. Memory stays as it is until then. A collective that has
  // something to do meanwhile begins them first, which moves what can be moved without waiting.
  virtual void receive(void *data, uint64_t bytes, int peer) = 0;
  virtual void send(const void *data, uint64_t bytes, int peer) = 0;
  virtual void begin(const char *what) = 0;
  virtual void complete(const char *what) = 0;

  // For complete(): throws if interrupt() was called.
  void checkInterrupted(const char *what) const;

  const int self, size;

private:
  void allGather(const void *src, void *dst, uint64_t bytes, const char *what);
  template <typename T, typename For> void sum(For &&forPeer, float *dst, uint64_t count, Staging staging, const char *what);
  void post(const void *data, uint64_t bytes, int peer);

  // Each rank begins with its right neighbour, so that not all of them talk to the same one.
  template <typename Body> void forOthers(Body &&body) {
    for (int step = 1; step < size; ++step) body((self + step) % size);
  }

  std::vector<char> tokens; // one byte of every rank, for barrier
  std::atomic<uint64_t> sent{0};
  std::atomic<bool> interrupted{false};
};

} // namespace zero::runtime

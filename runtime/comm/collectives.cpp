#include "runtime/comm/collectives.h"
#include "runtime/comm/ordered_sum.h"
#include "runtime/plan/error.h"
#include <cstring>

namespace zero::runtime {

void MessageCommunicator::allGather(const void *src, void *dst, uint64_t bytes, const char *what) {
  auto *whole = static_cast<char *>(dst);
  forOthers([&](int peer) { receive(whole + static_cast<uint64_t>(peer) * bytes, bytes, peer); });
  forOthers([&](int peer) { post(src, bytes, peer); });
  char *own = whole + static_cast<uint64_t>(self) * bytes;
  if (own != src) std::memcpy(own, src, bytes);
  complete(what);
}

void MessageCommunicator::reduceScatter(const float *src, float *dst, uint64_t count, float *staging) {
  uint64_t bytes = count * sizeof(float);
  forOthers([&](int peer) { receive(staging + static_cast<uint64_t>(peer) * count, bytes, peer); });
  forOthers([&](int peer) { post(src + static_cast<uint64_t>(peer) * count, bytes, peer); });
  complete("a reduce-scatter");
  orderedSum(staging, count, size, self, src + static_cast<uint64_t>(self) * count, dst, count);
}

void MessageCommunicator::allReduce(float *data, uint64_t count, float *staging) {
  uint64_t bytes = count * sizeof(float);
  forOthers([&](int peer) { receive(staging + static_cast<uint64_t>(peer) * count, bytes, peer); });
  forOthers([&](int peer) { post(data, bytes, peer); });
  complete("an all-reduce"); // before the sum: data is being sent
  orderedSum(staging, count, size, self, data, data, count);
}

void MessageCommunicator::barrier() {
  char token = 0;
  allGather(&token, tokens.data(), 1, "a barrier");
}

void MessageCommunicator::broadcast(void *data, uint64_t bytes, int root) {
  if (self == root)
    forOthers([&](int peer) { post(data, bytes, peer); });
  else
    receive(data, bytes, root);
  complete("a broadcast");
}

void MessageCommunicator::post(const void *data, uint64_t bytes, int peer) {
  send(data, bytes, peer);
  sent.fetch_add(bytes, std::memory_order_relaxed);
}

void MessageCommunicator::checkInterrupted(const char *what) const {
  if (interrupted.load(std::memory_order_relaxed))
    throw Error(std::string(what) + " on rank " + std::to_string(self) + " was given up because another lane failed");
}

} // namespace zero::runtime

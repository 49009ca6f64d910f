#include "runtime/comm/collectives.h"
#include "runtime/comm/ordered_sum.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <cstring>
#include <type_traits>

namespace zero::runtime {

void MessageCommunicator::allGather(const void *src, void *dst, uint64_t bytes, const char *what) {
  auto *whole = static_cast<char *>(dst);
  forOthers([&](int peer) { receive(whole + static_cast<uint64_t>(peer) * bytes, bytes, peer); });
  forOthers([&](int peer) { post(src, bytes, peer); });
  char *own = whole + static_cast<uint64_t>(self) * bytes;
  if (own != src) std::memcpy(own, src, bytes);
  complete(what);
}

// dst = the sum over ranks of what each has for this one; forPeer(r) is what this rank has for r.
template <typename T, typename For>
void MessageCommunicator::sum(For &&forPeer, float *dst, uint64_t count, Staging staging, const char *what) {
  auto *room = static_cast<T *>(staging.room);
  for (uint64_t begin = 0; begin < count; begin += staging.slice) {
    uint64_t size = std::min(staging.slice, count - begin), bytes = size * sizeof(T);
    forOthers([&](int peer) { receive(room + static_cast<uint64_t>(peer) * size, bytes, peer); });
    forOthers([&](int peer) { post(forPeer(peer) + begin, bytes, peer); });
    complete(what); // before the sum: of an all-reduce, what is overwritten was being sent
    orderedSum(room, size, world(), self, forPeer(self) + begin, dst + begin, size);
  }
}

void MessageCommunicator::reduceScatter(WireType type, const void *src, float *dst, uint64_t count, Staging staging) {
  auto scatter = [&](const auto *whole) {
    using T = std::remove_cvref_t<decltype(*whole)>;
    sum<T>([&](int rank) { return whole + static_cast<uint64_t>(rank) * count; }, dst, count, staging, "a reduce-scatter");
  };
  type == WireType::F32 ? scatter(static_cast<const float *>(src)) : scatter(static_cast<const Bf16Bits *>(src));
}

void MessageCommunicator::allReduce(float *data, uint64_t count, Staging staging) {
  sum<float>([&](int) { return data; }, data, count, staging, "an all-reduce");
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

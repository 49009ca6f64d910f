#include "runtime/comm/collectives.h"
#include "runtime/base/error.h"
#include "runtime/comm/ordered_sum.h"
#include <algorithm>
#include <cstring>
#include <type_traits>

namespace zero::runtime {
namespace {

// Bytes of a slice of one rank: less travels in about the time that a message takes in any case.
constexpr uint64_t kWorthTwoParts = 256 << 10;

} // namespace

void MessageCommunicator::allGather(const void *src, void *dst, uint64_t bytes, const char *what) {
  auto *whole = static_cast<char *>(dst);
  forOthers([&](int peer) { receive(whole + static_cast<uint64_t>(peer) * bytes, bytes, peer); });
  forOthers([&](int peer) { post(src, bytes, peer); });
  begin(what);
  char *own = whole + static_cast<uint64_t>(self) * bytes;
  if (own != src) std::memcpy(own, src, bytes);
  complete(what);
}

// dst = the sum over ranks of what each has for this one; forPeer(r) is what this rank has for r.
template <typename T, typename For>
void MessageCommunicator::sum(For &&forPeer, float *dst, uint64_t count, Staging staging, const char *what) {
  // With two parts of the room one piece of a slice travels while the one before it is summed.
  const uint64_t parts = staging.slice * sizeof(T) >= kWorthTwoParts ? 2 : 1, most = staging.slice / parts;
  struct Piece {
    T *room = nullptr;
    uint64_t begin = 0, size = 0;
  } arrived; // and not summed yet; of size 0: none
  auto add = [&] {
    orderedSum(arrived.room, arrived.size, world(), self, forPeer(self) + arrived.begin, dst + arrived.begin, arrived.size);
    arrived = {};
  };
  for (uint64_t at = 0, n = 0; at < count; at += most, ++n) {
    if (parts == 1) add(); // the next one needs its room
    Piece piece{static_cast<T *>(staging.room) + n % parts * most * static_cast<uint64_t>(size), at, std::min(most, count - at)};
    forOthers([&](int peer) { receive(piece.room + static_cast<uint64_t>(peer) * piece.size, piece.size * sizeof(T), peer); });
    forOthers([&](int peer) { post(forPeer(peer) + at, piece.size * sizeof(T), peer); });
    begin(what);
    add();
    complete(what); // before its sum: of an all-reduce, what is overwritten was being sent
    arrived = piece;
  }
  add();
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

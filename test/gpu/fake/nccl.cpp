// The functions of libnccl.so.2 that runtime/device/cuda/nccl.h lists, between processes of one machine, through a file in memory. As in
// NCCL operations of a communicator run in the order in which they are called, whatever their streams, and who waits for a rank that is no
// more waits until the communicator is aborted. Sums go around two rings in opposite directions, each with half of the elements, so that
// their order is neither that of ranks nor the same for another count.
#include "runtime/device/cuda/nccl.h"
#include "test/gpu/fake/faults.h"
#include "test/gpu/fake/memory.h"
#include "test/gpu/fake/streams.h"
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace zero::runtime::cuda;
namespace fake = zero::fake;
using fake::Fault;
using fake::Memory;

namespace {

constexpr NcclStatus kSystemError = 2, kInternalError = 3, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
constexpr int kRanks = 8;
constexpr size_t kRoom = 4096; // bytes of each rank: little, so that what tests move goes in several pieces

struct Shared {
  std::atomic<int> joined, arrived, round;
  std::atomic<int> process[kRanks]; // 0: has left
  uint64_t call[kRanks][2];         // what each is about to do, and with how much
  std::byte room[kRanks][kRoom];
};

struct Group {
  Shared *shared;
  int ranks, rank;
  std::atomic<bool> aborted{false};
  std::atomic<NcclStatus> state{0};
  fake::Event order{false}; // completed by each operation in its turn

  bool someoneIsGone() const {
    for (int r = 0; r < ranks; ++r)
      if (int process = shared->process[r]; process == 0 || ::kill(process, 0) != 0) return true;
    return false;
  }
  // Until all ranks are here; false if that will not be.
  bool meet() {
    int round = shared->round;
    if (++shared->arrived == ranks) {
      shared->arrived = 0;
      ++shared->round;
      return true;
    }
    while (shared->round == round) {
      if (aborted || fake::lostDevice()) return false;
      if (someoneIsGone() && shared->round == round) state = kRemoteError;
      ::usleep(20);
    }
    return true;
  }
};

Group &of(NcclHandle handle) { return *reinterpret_cast<Group *>(handle); }

NcclStatus refusal(const char *function) { return fake::faultOf(function) == Fault::None ? 0 : kInternalError; }

// Puts an operation into a stream, after those before it. `piece` is called with the first element of each piece and their number, between
// the ranks' putting what they give into `room` (give) and taking what they get (take).
template <typename Give, typename Take>
NcclStatus put(const char *function, uint64_t kind, Group &group, size_t count, size_t atOnce, StreamHandle stream, Give give, Take take) {
  Fault fault = fake::faultOf(function);
  if (fault == Fault::Now) return kInternalError;
  if (reinterpret_cast<fake::Stream *>(stream)->capture) return kInvalidUsage; // NCCL's can be captured, the fake's cannot
  uint64_t turn = group.order.record();
  reinterpret_cast<fake::Stream *>(stream)->put([=, &group]() -> int {
    group.order.await(turn - 1);
    if (fault == Fault::Later) return 719;
    for (size_t first = 0; first < count && !group.aborted; first += atOnce) {
      size_t size = std::min(atOnce, count - first);
      uint64_t call[2] = {kind, count};
      std::memcpy(group.shared->call[group.rank], call, sizeof(call));
      give(first, size);
      if (!group.meet()) break;
      for (int r = 0; r < group.ranks; ++r)
        if (std::memcmp(group.shared->call[r], call, sizeof(call)) != 0) group.state = kInvalidUsage; // ranks call different things
      take(first, size);
      if (!group.meet()) break;
    }
    group.order.complete(turn);
    return 0;
  });
  return 0;
}

float *floats(std::byte *at) { return reinterpret_cast<float *>(at); }

// The element that ranks have put at `i` of their rooms, of those that the ring of rank `owner` sums: place `at` of `count`.
float ringSum(const Group &group, size_t owner, size_t at, size_t count, size_t i) {
  auto ranks = static_cast<size_t>(group.ranks);
  float sum = 0;
  for (size_t step = 1; step <= ranks; ++step) {
    size_t rank = at < count / 2 ? (owner + step) % ranks : (owner + ranks - step) % ranks;
    sum += floats(group.shared->room[rank])[i];
  }
  return sum;
}

// Messages between pairs of ranks, of the calls between ncclGroupStart and ncclGroupEnd of a thread.
struct Message {
  std::byte *memory;
  size_t bytes;
};
thread_local int groups = 0;
thread_local Group *exchanging = nullptr;
thread_local StreamHandle exchangingOn{};
thread_local std::map<int, Message> outgoing, incoming;

NcclStatus message(const char *function, std::map<int, Message> &messages, const void *memory, size_t bytes, int type, int peer,
                   NcclHandle handle, StreamHandle stream) {
  if (NcclStatus status = refusal(function)) return status;
  Group &group = of(handle);
  std::byte *at = Memory::get().reach(reinterpret_cast<uint64_t>(memory), bytes);
  bool fits = groups > 0 && (!exchanging || (exchanging == &group && exchangingOn == stream)); // the fake knows no others
  if (!fits || !at || type != kNcclBytes || peer < 0 || peer >= group.ranks || peer == group.rank || messages.contains(peer))
    return kInvalidArgument;
  exchanging = &group, exchangingOn = stream;
  messages[peer] = {at, bytes};
  return 0;
}

// The fake knows exchanges of all ranks with all others, in which all messages have one size.
NcclStatus exchange() {
  Group &group = *std::exchange(exchanging, nullptr);
  auto out = std::exchange(outgoing, {}), in = std::exchange(incoming, {});
  auto others = static_cast<size_t>(group.ranks) - 1;
  if (out.size() != others || in.size() != others) return kInvalidUsage;
  size_t bytes = out.begin()->second.bytes, atOnce = kRoom / static_cast<size_t>(group.ranks);
  for (const auto *messages : {&out, &in})
    for (const auto &[peer, each] : *messages)
      if (each.bytes != bytes) return kInvalidUsage;
  auto give = [=, &group](size_t first, size_t size) {
    for (const auto &[peer, each] : out)
      std::memcpy(group.shared->room[group.rank] + static_cast<size_t>(peer) * atOnce, each.memory + first, size);
  };
  auto take = [=, &group](size_t first, size_t size) {
    for (const auto &[peer, each] : in)
      std::memcpy(each.memory + first, group.shared->room[peer] + static_cast<size_t>(group.rank) * atOnce, size);
  };
  return put("ncclGroupEnd", 4, group, bytes, atOnce, exchangingOn, give, take);
}

} // namespace

extern "C" {

const char *ncclGetErrorString(NcclStatus status) {
  switch (status) {
  case kSystemError:
    return "unhandled system error";
  case kInternalError:
    return "internal error";
  case kInvalidArgument:
    return "invalid argument";
  case kInvalidUsage:
    return "invalid usage";
  case kRemoteError:
    return "remote process exited or there was a network error";
  default:
    return nullptr;
  }
}

NcclStatus ncclGetUniqueId(NcclId *id) {
  if (NcclStatus status = refusal("ncclGetUniqueId")) return status;
  int file = ::memfd_create("fake-nccl", MFD_CLOEXEC); // stays open: the others open it from here
  if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) return kSystemError;
  std::string name = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file);
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->bytes, name.c_str(), name.size());
  return 0;
}

NcclStatus ncclCommInitRank(NcclHandle *handle, int ranks, NcclId id, int rank) {
  if (NcclStatus status = refusal("ncclCommInitRank")) return status;
  if (ranks > kRanks || rank < 0 || rank >= ranks) return kInvalidArgument;
  int file = ::open(id.bytes, O_RDWR | O_CLOEXEC);
  void *memory = file < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return kSystemError;
  auto *shared = static_cast<Shared *>(memory);
  shared->process[rank] = ::getpid();
  for (++shared->joined; shared->joined < ranks;) ::usleep(20);
  auto *group = new Group{shared, ranks, rank};
  *handle = reinterpret_cast<NcclHandle>(group);
  return 0;
}

// What an aborted one has put into streams may still look at it: it stays.
NcclStatus ncclCommAbort(NcclHandle handle) {
  of(handle).aborted = true;
  of(handle).shared->process[of(handle).rank] = 0;
  return refusal("ncclCommAbort");
}
NcclStatus ncclCommDestroy(NcclHandle handle) {
  of(handle).shared->process[of(handle).rank] = 0;
  return refusal("ncclCommDestroy");
}
NcclStatus ncclCommGetAsyncError(NcclHandle handle, NcclStatus *state) {
  *state = of(handle).state;
  return refusal("ncclCommGetAsyncError");
}

NcclStatus ncclCommRegister(NcclHandle, void *memory, size_t bytes, void **entry) {
  if (NcclStatus status = refusal("ncclCommRegister")) return status;
  if (bytes == 0 || !Memory::get().reach(reinterpret_cast<uint64_t>(memory), bytes)) return kInvalidArgument;
  *entry = memory;
  return 0;
}
NcclStatus ncclCommDeregister(NcclHandle, void *) { return refusal("ncclCommDeregister"); }

NcclStatus ncclGroupStart() {
  ++groups;
  return refusal("ncclGroupStart");
}
NcclStatus ncclGroupEnd() {
  if (groups == 0) return kInvalidUsage;
  return --groups == 0 && exchanging ? exchange() : 0;
}
NcclStatus ncclSend(const void *src, size_t count, int type, int peer, NcclHandle handle, StreamHandle stream) {
  return message("ncclSend", outgoing, src, count, type, peer, handle, stream);
}
NcclStatus ncclRecv(void *dst, size_t count, int type, int peer, NcclHandle handle, StreamHandle stream) {
  return message("ncclRecv", incoming, dst, count, type, peer, handle, stream);
}

NcclStatus ncclAllGather(const void *src, void *dst, size_t count, int type, NcclHandle handle, StreamHandle stream) {
  Group &group = of(handle);
  auto all = static_cast<size_t>(group.ranks) * count;
  std::byte *from = Memory::get().reach(reinterpret_cast<uint64_t>(src), count),
            *to = Memory::get().reach(reinterpret_cast<uint64_t>(dst), all);
  if (!from || !to || type != kNcclBytes) return kInvalidArgument;
  auto give = [=, &group](size_t first, size_t size) { std::memcpy(group.shared->room[group.rank], from + first, size); };
  auto take = [=, &group](size_t first, size_t size) {
    for (int r = 0; r < group.ranks; ++r) std::memcpy(to + static_cast<size_t>(r) * count + first, group.shared->room[r], size);
  };
  return put("ncclAllGather", 1, group, count, kRoom, stream, give, take);
}

NcclStatus ncclReduceScatter(const void *src, void *dst, size_t count, int type, int operation, NcclHandle handle, StreamHandle stream) {
  Group &group = of(handle);
  auto ranks = static_cast<size_t>(group.ranks), self = static_cast<size_t>(group.rank), atOnce = kRoom / sizeof(float) / ranks;
  std::byte *from = Memory::get().reach(reinterpret_cast<uint64_t>(src), ranks * count * sizeof(float)),
            *to = Memory::get().reach(reinterpret_cast<uint64_t>(dst), count * sizeof(float));
  if (!from || !to || type != kNcclReal32 || operation != kNcclSum) return kInvalidArgument;
  auto give = [=, &group](size_t first, size_t size) {
    for (size_t r = 0; r < ranks; ++r)
      std::memcpy(floats(group.shared->room[self]) + r * atOnce, floats(from) + r * count + first, size * sizeof(float));
  };
  auto take = [=, &group](size_t first, size_t size) {
    for (size_t i = 0; i < size; ++i) floats(to)[first + i] = ringSum(group, self, first + i, count, self * atOnce + i);
  };
  return put("ncclReduceScatter", 2, group, count, atOnce, stream, give, take);
}

NcclStatus ncclAllReduce(const void *src, void *dst, size_t count, int type, int operation, NcclHandle handle, StreamHandle stream) {
  Group &group = of(handle);
  std::byte *from = Memory::get().reach(reinterpret_cast<uint64_t>(src), count * sizeof(float)),
            *to = Memory::get().reach(reinterpret_cast<uint64_t>(dst), count * sizeof(float));
  if (!from || !to || type != kNcclReal32 || operation != kNcclSum) return kInvalidArgument;
  auto give = [=, &group](size_t first, size_t size) {
    std::memcpy(group.shared->room[group.rank], floats(from) + first, size * sizeof(float));
  };
  size_t part = (count + static_cast<size_t>(group.ranks) - 1) / static_cast<size_t>(group.ranks); // of each rank's ring
  auto take = [=, &group](size_t first, size_t size) {
    for (size_t i = 0; i < size; ++i) floats(to)[first + i] = ringSum(group, (first + i) / part, (first + i) % part, part, i);
  };
  return put("ncclAllReduce", 3, group, count, kRoom / sizeof(float), stream, give, take);
}

} // extern "C"

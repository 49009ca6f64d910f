#include "runtime/device/cuda/collectives.h"
#include <utility>

namespace zero::runtime::cuda {
namespace {

void *at(Pointer pointer) { return reinterpret_cast<void *>(pointer); }

} // namespace

Collectives::Collectives(CommunicatorFactory &factory)
    : nccl(Nccl::get()), self(factory.rank()), world(factory.world()), watch(factory.peers(), self, world) {
  std::unique_ptr<Communicator> host = factory.create();
  NcclId id{};
  if (factory.rank() == 0) nccl.require(nccl.makeId(&id), "cannot make a communicator of GPUs");
  host->broadcast(&id, sizeof(id), 0);
  host->barrier(); // joining waits for all ranks inside NCCL, where nobody could say for whom
  nccl.require(nccl.join(&handle, factory.world(), id, factory.rank()), "cannot connect the GPUs of the ranks");
}

Collectives::~Collectives() {
  if (!handle) return;
  for (void *entry : entries) nccl.withdraw(handle, entry);
  nccl.destroy(handle);
}

void Collectives::enroll(Pointer memory, uint64_t bytes) {
  void *entry = nullptr;
  nccl.require(nccl.enroll(handle, at(memory), bytes, &entry), "cannot tell NCCL where arenas lie");
  entries.push_back(entry);
}

void Collectives::run(const AllGatherOf<Pointer> &call, StreamHandle stream) {
  nccl.require(nccl.allGather(at(call.src), at(call.dst), call.bytes, kNcclBytes, handle, stream), "cannot gather");
}

void Collectives::run(const ExchangeCall &call, StreamHandle stream) {
  const char *what = "cannot exchange what is summed";
  nccl.require(nccl.groupStart(), what);
  NcclStatus status = 0;
  for (int rank = 0; rank < world && status == 0; ++rank) {
    if (rank == self) continue;
    auto r = static_cast<uint64_t>(rank);
    status = nccl.send(at(call.src + r * call.stride), call.bytes, kNcclBytes, rank, handle, stream);
    if (status == 0) status = nccl.receive(at(call.dst + r * call.bytes), call.bytes, kNcclBytes, rank, handle, stream);
  }
  NcclStatus ended = nccl.groupEnd();
  nccl.require(status ? status : ended, what);
}

void Collectives::run(const ReduceScatterOf<Pointer> &call, StreamHandle stream) {
  nccl.require(nccl.reduceScatter(at(call.src), at(call.dst), call.count, kNcclReal32, kNcclSum, handle, stream), "cannot reduce");
}

void Collectives::run(const AllReduceOf<Pointer> &call, StreamHandle stream) {
  nccl.require(nccl.allReduce(at(call.data), at(call.data), call.count, kNcclReal32, kNcclSum, handle, stream), "cannot reduce");
}

void Collectives::check(std::chrono::steady_clock::time_point since) {
  NcclStatus state = 0;
  nccl.require(nccl.asyncError(handle, &state), "cannot ask NCCL how it is");
  if (state != 0 && state != kNcclInProgress && !watch.missesAnyone()) nccl.require(state, "a collective cannot end");
  watch.look(since);
}

void Collectives::abort() noexcept {
  if (NcclHandle old = std::exchange(handle, {})) nccl.abort(old);
}

} // namespace zero::runtime::cuda

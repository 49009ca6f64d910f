#include "runtime/storage/ring_queue.h"
#include "runtime/storage/storage.h"
#include "runtime/storage/thread_queue.h"

namespace zero::runtime {
namespace {

std::unique_ptr<RequestQueue> makeQueue(std::span<const int> files) {
  try {
    return makeRingQueue(files);
  } catch (const RingRefused &refused) {
    return makeThreadQueueBecause(files, std::string(refused.what()) + "; threads read and write the disk instead, which may be slower");
  }
}

} // namespace

std::unique_ptr<Storage> openStorage(const std::vector<std::string> &folders, int rank) {
  return std::make_unique<Storage>(folders, rank, makeQueue);
}

} // namespace zero::runtime

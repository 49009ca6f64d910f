// What a rank keeps on disk, as one range of bytes: reads and writes of whole blocks, of any length, which return when all of it is done.
// Each is cut into many requests that are under way together, which is what makes a disk fast. A read and a write may run at the same time;
// reads take turns among themselves, and so do writes. Nothing is allocated once it is open.
#pragma once
#include "runtime/storage/disk_files.h"
#include "runtime/storage/request_queue.h"
#include <atomic>
#include <mutex>

namespace zero::runtime {

// Bytes that went from and to disks. What is written wears an SSD.
struct DiskTraffic {
  uint64_t read = 0, written = 0;
};

class Storage {
public:
  Storage(const std::vector<std::string> &folders, int rank, const MakeQueue &make, bool direct = true);

  // More room, as DiskFiles has it. Before the first transfer.
  uint64_t allocate(uint64_t bytes) { return files.allocate(bytes); }
  // Memory that will be read to and written from, which outlives the storage.
  void registerMemory(std::span<const std::span<std::byte>> memory);

  // Offset, address and length are multiples of kBlockBytes. Throws a sentence if the disk fails; then nothing is under way any more, and
  // what was read, or is on disk there, may be anything.
  void read(uint64_t offset, std::span<std::byte> to) { transfer(reads, false, offset, to.data(), to.size()); }
  void write(uint64_t offset, std::span<const std::byte> from) {
    transfer(writes, true, offset, const_cast<std::byte *>(from.data()), from.size());
  }

  DiskTraffic traffic() const { return {reads.bytes, writes.bytes}; }
  // What people should know of how it works, a sentence each: that it is slower than it could be, and why.
  std::vector<std::string> notes() const;

private:
  // What goes in one direction.
  struct Channel {
    explicit Channel(std::unique_ptr<RequestQueue> queue) : queue(std::move(queue)), requests(this->queue->depth()) {}
    std::mutex mutex;
    std::unique_ptr<RequestQueue> queue;
    std::vector<Request> requests; // under way, by slot
    std::vector<uint32_t> free;    // slots
    std::atomic<uint64_t> bytes{0};
  };

  void transfer(Channel &channel, bool writes, uint64_t offset, std::byte *memory, uint64_t bytes);
  bool completed(Request &request, int64_t result, std::string &failure) const;

  DiskFiles files;
  Channel reads, writes;
};

// With io_uring, or threads where the system does not allow it.
std::unique_ptr<Storage> openStorage(const std::vector<std::string> &folders, int rank);

} // namespace zero::runtime

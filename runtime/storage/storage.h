// What a rank keeps on disk, as one range of bytes: reads and writes of whole blocks, of any length, which return when all of it is done.
// Each is cut into many requests that are under way together, which is what makes a disk fast. A read and a write may run at the same time;
// reads take turns among themselves, and so do writes, and transfers of scattered parts. Nothing is allocated once it is open.
#pragma once
#include "runtime/storage/disk_files.h"
#include "runtime/storage/request_queue.h"
#include <atomic>
#include <mutex>
#include <optional>

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

  // What many small transfers are about: bytes on disk, and in memory.
  struct Part {
    uint64_t offset;
    std::byte *memory;
    uint64_t bytes;
  };

  // Offset, address and length are multiples of kBlockBytes. Throws a sentence if the disk fails; then nothing is under way any more, and
  // what was read, or is on disk there, may be anything.
  void read(uint64_t offset, std::span<std::byte> to) {
    Part all{offset, to.data(), to.size()};
    transfer(reads, false, {&all, 1});
  }
  void write(uint64_t offset, std::span<const std::byte> from) {
    Part all{offset, const_cast<std::byte *>(from.data()), from.size()};
    transfer(writes, true, {&all, 1});
  }

  // The same of parts that lie anywhere, all under way together. They have a channel of their own, which is opened before: those of large
  // transfers would let them wait for as long as one takes.
  void openScattered();
  void readScattered(std::span<const Part> parts) { transfer(*scattered, false, parts); }
  void writeScattered(std::span<const Part> parts) { transfer(*scattered, true, parts); }

  DiskTraffic traffic() const { return {readBytes, writtenBytes}; }
  // What people should know of how it works, a sentence each: that it is slower than it could be, and why.
  std::vector<std::string> notes() const;

private:
  // Transfers that take turns: what goes in one direction, or scattered parts.
  struct Channel {
    explicit Channel(std::unique_ptr<RequestQueue> made);
    std::mutex mutex;
    std::unique_ptr<RequestQueue> queue;
    std::vector<Request> requests; // under way, by slot
    std::vector<uint32_t> free;    // slots
  };

  void transfer(Channel &channel, bool writes, std::span<const Part> parts);
  void requireInside(const Part &part) const;
  bool completed(Request &request, int64_t result, std::string &failure) const;

  DiskFiles files;
  MakeQueue make;
  Channel reads, writes;
  std::optional<Channel> scattered;
  std::atomic<uint64_t> readBytes{0}, writtenBytes{0};
};

// With io_uring, or threads where the system does not allow it.
std::unique_ptr<Storage> openStorage(const std::vector<std::string> &folders, int rank);

} // namespace zero::runtime

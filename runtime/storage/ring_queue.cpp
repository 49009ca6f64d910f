#include "runtime/storage/ring_queue.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <liburing.h>
#include <memory>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace zero::runtime {
namespace {

// Enough for a disk to stay busy while completions are looked at: with requests of a stripe none that was measured gains from more.
constexpr uint32_t kDepthOfADisk = 32;
constexpr uint64_t kLargestRegion = uint64_t(1) << 30; // of registered memory: the system's limit
constexpr size_t kMostRegions = 1024;                  // the limit of older systems
constexpr uint64_t kHugePage = uint64_t(2) << 20;

[[noreturn]] void refuse(const std::string &what, int reason) {
  std::string sentence = "io_uring cannot " + what + " here: " + std::strerror(reason);
  if (reason == ENOSYS) throw RingRefused(sentence);
  if (reason == EPERM || reason == EACCES) throw RingRefused(sentence + ", as in many containers");
  if (reason == ENOMEM) throw RingRefused(sentence + " within the limit on locked memory (ulimit -l)");
  throw Error(sentence);
}

class RingQueue final : public RequestQueue {
public:
  explicit RingQueue(std::span<const int> files) : depth_(kDepthOfADisk * static_cast<uint32_t>(files.size())) {
    if (int failed = io_uring_queue_init(depth_, &ring, 0)) refuse("make a queue", -failed);
    int failed = knowsRequests() ? io_uring_register_files(&ring, files.data(), static_cast<unsigned>(files.size())) : -ENOSYS;
    if (failed) {
      io_uring_queue_exit(&ring);
      refuse(failed == -ENOSYS ? "read and write" : "register files", -failed);
    }
  }
  ~RingQueue() override { io_uring_queue_exit(&ring); }
  RingQueue(const RingQueue &) = delete;
  RingQueue &operator=(const RingQueue &) = delete;

  uint32_t depth() const override { return depth_; }

  void submit(uint32_t slot, const Request &r) override {
    io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (!entry) throw Error("too many requests to the disk are under way: this is an error in zerorun");
    auto file = static_cast<int>(r.file);
    int region = regionOf(r);
    if (region < 0 && r.writes) io_uring_prep_write(entry, file, r.memory, r.bytes, r.offset);
    if (region < 0 && !r.writes) io_uring_prep_read(entry, file, r.memory, r.bytes, r.offset);
    if (region >= 0 && r.writes) io_uring_prep_write_fixed(entry, file, r.memory, r.bytes, r.offset, region);
    if (region >= 0 && !r.writes) io_uring_prep_read_fixed(entry, file, r.memory, r.bytes, r.offset, region);
    entry->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data(entry, reinterpret_cast<void *>(static_cast<uintptr_t>(slot)));
  }

  Outcome wait(uint32_t together) override {
    io_uring_cqe *complete = nullptr;
    while (io_uring_peek_cqe(&ring, &complete) != 0) {
      int failed = io_uring_submit_and_wait(&ring, together);
      if (failed < 0 && failed != -EINTR && failed != -EAGAIN && failed != -EBUSY)
        throw Error(std::string("io_uring takes no more requests to --disk-path: ") + std::strerror(-failed) +
                    "; resume from the last checkpoint");
    }
    Outcome outcome{static_cast<uint32_t>(reinterpret_cast<uintptr_t>(io_uring_cqe_get_data(complete))), complete->res};
    io_uring_cqe_seen(&ring, complete);
    return outcome;
  }

  // Pages that are known need not be looked up in every request. They count against the limit on locked memory; where that does not allow
  // it the requests name plain memory. A region with pages of one size is known by these: huge ones make a transfer few requests of the
  // disk, where pages of 4 KiB are no more than 256 in one. So what does not fill a huge page at the end is a region of its own.
  void registerMemory(std::span<const std::span<std::byte>> memory) override {
    std::vector<iovec> parts;
    for (std::span<std::byte> bytes : memory) {
      uint64_t tail = bytes.size() / kHugePage * kHugePage;
      for (uint64_t first = 0, end; first < bytes.size(); first = end) {
        end = std::min(first + kLargestRegion, first < tail ? tail : bytes.size());
        parts.push_back({bytes.data() + first, end - first});
      }
    }
    if (parts.empty() || parts.size() > kMostRegions) return;
    if (!regions.empty()) io_uring_unregister_buffers(&ring);
    regions.clear();
    int failed = io_uring_register_buffers(&ring, parts.data(), static_cast<unsigned>(parts.size()));
    if (failed && failed != -ENOMEM && failed != -EPERM) refuse("register memory", -failed);
    if (!failed) regions = std::move(parts);
  }

private:
  // Linux has them since 5.6, and says so; before that it has io_uring with fewer.
  bool knowsRequests() {
    std::unique_ptr<io_uring_probe, decltype(&io_uring_free_probe)> probe(io_uring_get_probe_ring(&ring), io_uring_free_probe);
    return probe && io_uring_opcode_supported(probe.get(), IORING_OP_READ) && io_uring_opcode_supported(probe.get(), IORING_OP_WRITE);
  }

  // The registered part that all of it lies in, or −1.
  int regionOf(const Request &request) const {
    for (size_t i = 0; i < regions.size(); ++i) {
      auto *begin = static_cast<std::byte *>(regions[i].iov_base);
      if (request.memory >= begin && request.memory + request.bytes <= begin + regions[i].iov_len) return static_cast<int>(i);
    }
    return -1;
  }

  uint32_t depth_;
  io_uring ring{};
  std::vector<iovec> regions; // registered
};

} // namespace

std::unique_ptr<RequestQueue> makeRingQueue(std::span<const int> files) { return std::make_unique<RingQueue>(files); }

} // namespace zero::runtime

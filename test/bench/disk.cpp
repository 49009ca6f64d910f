// What the disk lanes can move: transfers of the size of a bucket, through the storage that a plan's copies use. Run by disk.py.
//
// usage: disk_bench FOLDER[,FOLDER] read|write|mixed io_uring|plain|threads MEGABYTES SECONDS TRANSFER
// Prints bytes per second, in transfers of TRANSFER megabytes, one after another. `plain`: io_uring without registered memory; `mixed`: a
// read and a write at a time, the sum of both.
#include "runtime/plan/error.h"
#include "runtime/storage/ring_queue.h"
#include "runtime/storage/storage.h"
#include "runtime/storage/thread_queue.h"
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sys/mman.h>
#include <thread>

using namespace zero::runtime;
using Clock = std::chrono::steady_clock;

namespace {

constexpr uint64_t kMegabyte = uint64_t(1) << 20;

std::span<std::byte> memory(uint64_t bytes) {
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw zero::Error("no memory");
  madvise(mapped, bytes, MADV_HUGEPAGE);
  std::mt19937_64 random; // no disk can make less of it than it is
  for (uint64_t i = 0; i < bytes / 8; ++i) static_cast<uint64_t *>(mapped)[i] = random();
  return {static_cast<std::byte *>(mapped), bytes};
}

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t at = 0, end; at <= text.size(); at = end + 1) {
    end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
  }
  return parts;
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 7) return 2;
  std::string mode = argv[2], engine = argv[3];
  uint64_t transfer = std::strtoull(argv[6], nullptr, 10) * kMegabyte;
  uint64_t size = std::strtoull(argv[4], nullptr, 10) * kMegabyte / transfer * transfer;
  double limit = std::strtod(argv[5], nullptr);
  Storage storage(split(argv[1]), 0, engine == "threads" ? makeThreadQueue : makeRingQueue);
  storage.allocate(size);
  std::span<std::byte> from = memory(transfer), to = memory(transfer);
  if (engine == "io_uring") storage.registerMemory(std::vector{from, to});
  for (uint64_t at = 0; at < size; at += transfer) storage.write(at, from); // what was never written costs no reading
  std::atomic<uint64_t> moved{0};
  Clock::time_point begin = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  auto repeat = [&](uint64_t first, auto &&move) {
    for (uint64_t at = first; seconds() < limit; at = (at + transfer) % size) move(at), moved += transfer;
  };
  std::vector<std::jthread> lanes;
  if (mode != "write") lanes.emplace_back([&] { repeat(0, [&](uint64_t at) { storage.read(at, to); }); });
  if (mode != "read") lanes.emplace_back([&] { repeat(size / transfer / 2 * transfer, [&](uint64_t at) { storage.write(at, from); }); });
  lanes.clear();
  std::printf("%.0f\n", static_cast<double>(moved) / seconds());
} catch (const std::exception &error) {
  std::fprintf(stderr, "disk_bench: %s\n", error.what());
  return 1;
}

// What the disk lanes can move: transfers of the size of a bucket, through the storage that a plan's copies use. Run by disk.py.
//
// usage: disk_bench FOLDER[,FOLDER] read|write|mixed io_uring|plain|threads MEGABYTES SECONDS
// Prints bytes per second. `plain`: io_uring without registered memory; `mixed`: a read and a write at a time, the sum of both.
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

constexpr uint64_t kTransfer = uint64_t(64) << 20;

std::span<std::byte> memory() {
  void *mapped = mmap(nullptr, kTransfer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw zero::Error("no memory");
  madvise(mapped, kTransfer, MADV_HUGEPAGE);
  std::mt19937_64 random; // no disk can make less of it than it is
  for (uint64_t i = 0; i < kTransfer / 8; ++i) static_cast<uint64_t *>(mapped)[i] = random();
  return {static_cast<std::byte *>(mapped), kTransfer};
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
  if (argc != 6) return 2;
  std::string mode = argv[2], engine = argv[3];
  uint64_t size = std::strtoull(argv[4], nullptr, 10) / 64 * kTransfer;
  double limit = std::strtod(argv[5], nullptr);
  Storage storage(split(argv[1]), 0, engine == "threads" ? makeThreadQueue : makeRingQueue);
  storage.allocate(size);
  std::span<std::byte> from = memory(), to = memory();
  if (engine == "io_uring") storage.registerMemory(std::vector{from, to});
  for (uint64_t at = 0; at < size; at += kTransfer) storage.write(at, from); // what was never written costs no reading
  std::atomic<uint64_t> moved{0};
  Clock::time_point begin = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  auto repeat = [&](uint64_t first, auto &&transfer) {
    for (uint64_t at = first; seconds() < limit; at = (at + kTransfer) % size) transfer(at), moved += kTransfer;
  };
  std::vector<std::jthread> lanes;
  if (mode != "write") lanes.emplace_back([&] { repeat(0, [&](uint64_t at) { storage.read(at, to); }); });
  if (mode != "read") lanes.emplace_back([&] { repeat(size / 2, [&](uint64_t at) { storage.write(at, from); }); });
  lanes.clear();
  std::printf("%.0f\n", static_cast<double>(moved) / seconds());
} catch (const std::exception &error) {
  std::fprintf(stderr, "disk_bench: %s\n", error.what());
  return 1;
}

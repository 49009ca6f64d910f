// What the disk lanes can move: transfers of the size of a bucket, through the storage that a plan's copies use. Run by disk.py.
//
// usage: disk_bench FOLDER[,FOLDER] read|write|mixed io_uring|plain|threads MEGABYTES SECONDS TRANSFER
// Prints bytes per second, in transfers of TRANSFER megabytes, one after another. `plain`: io_uring without registered memory; `mixed`: a
// read and a write at a time, the sum of both.
#include "runtime/device/cpu/memory.h"
#include "runtime/storage/ring_queue.h"
#include "runtime/storage/storage.h"
#include "runtime/storage/thread_queue.h"
#include "test/bench/disk_common.h"
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace zero::runtime;
using Clock = std::chrono::steady_clock;

namespace {

constexpr uint64_t kMegabyte = uint64_t(1) << 20;

} // namespace

int main(int argc, char **argv) try {
  if (argc != 7) return 2;
  std::string mode = argv[2], engine = argv[3];
  uint64_t transfer = std::strtoull(argv[6], nullptr, 10) * kMegabyte;
  uint64_t size = std::strtoull(argv[4], nullptr, 10) * kMegabyte / transfer * transfer;
  double limit = std::strtod(argv[5], nullptr);
  Storage storage(zero::bench::split(argv[1]), 0, engine == "threads" ? makeThreadQueue : makeRingQueue);
  storage.allocate(size);
  MappedArena source("written", transfer), destination("read", transfer);
  std::span<std::byte> from = source.bytes(), to = destination.bytes();
  zero::bench::fillWithNoise(from), zero::bench::fillWithNoise(to);
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

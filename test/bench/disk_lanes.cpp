// The disk lanes of a plan alone: all that one of its programs copies from and to disk, and the rows that it writes there, spread evenly,
// lane by lane, in the plan's order, sizes and places, and waiting for nothing else. What a step takes at least whatever else is hidden.
// Run by memory.py.
//
// usage: disk_lanes PLAN FOLDER[,FOLDER] PROGRAM STEPS
// Prints "ready" after a first step and waits for a line, then makes STEPS and prints what one took, of rank 0: the median, and the mean.
#include "runtime/base/error.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/plan/container.h"
#include "runtime/plan/state.h"
#include "runtime/storage/row_writer.h"
#include "runtime/storage/storage.h"
#include "test/bench/disk_common.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

using namespace zero;
using namespace zero::runtime;

namespace {

struct Transfer {
  bool writes;
  uint64_t onDisk;
  std::byte *memory;
  uint64_t bytes;
  std::optional<TableRows> rows{}; // if it is those
  std::vector<int64_t> indices{};
};

// Arenas as a run has them, each where a transfer touches it.
struct Arenas {
  const plan::Plan &plan;
  std::vector<MappedArena> memory;
  std::vector<uint64_t> begins; // of those on disk
  uint64_t onDisk = 0;

  explicit Arenas(const plan::Plan &plan) : plan(plan) {
    for (const plan::Arena &arena : plan.arenas()) {
      bool disk = arena.tier() == plan::DISK;
      memory.emplace_back(arena.name(), disk ? 0 : arena.bytes());
      begins.push_back(onDisk);
      onDisk += disk ? arena.bytes() : 0;
    }
  }
  bool isOnDisk(const plan::Ref &ref) const { return plan.arenas(int(plan.buffers(int(ref.buffer())).arena())).tier() == plan::DISK; }
  Transfer transfer(const plan::Ref &memoryRef, const plan::Ref &diskRef, bool writes) const {
    const plan::Buffer &there = plan.buffers(int(diskRef.buffer())), &here = plan.buffers(int(memoryRef.buffer()));
    return {writes, begins[there.arena()] + there.offset() + diskRef.offset(),
            memory[here.arena()].data() + here.offset() + memoryRef.offset(), memoryRef.bytes()};
  }
  Transfer rowsOf(const plan::Step &step) const {
    Transfer made = transfer(step.reads(0), step.writes(0), true);
    const plan::TableRows &table = step.write_rows();
    made.rows = {plan::I64, plan::expectedRows(step), table.row_bytes(), table.begin(), step.writes(0).bytes()};
    uint64_t first = table.begin() / table.row_bytes(), rows = (made.rows->bytes + table.row_bytes() - 1) / table.row_bytes();
    for (uint64_t row = 0; row < made.rows->count; ++row) made.indices.push_back(int64_t(first + row * rows / made.rows->count));
    return made;
  }
};

void make(const Transfer &t, Storage &storage, RowWriter *rows) {
  if (t.rows)
    rows->put(*t.rows, t.indices.data(), t.memory, t.onDisk);
  else if (t.writes)
    storage.write(t.onDisk, {t.memory, t.bytes});
  else
    storage.read(t.onDisk, {t.memory, t.bytes});
}

double stepOf(const std::map<int, std::vector<Transfer>> &lanes, Storage &storage, RowWriter *rows) {
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::jthread> threads;
  for (const auto &[lane, transfers] : lanes)
    threads.emplace_back([&storage, rows, &list = transfers] {
      for (const Transfer &t : list) make(t, storage, rows);
    });
  threads.clear();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

int main(int argc, char **argv) try {
  if (argc != 5) return 2;
  plan::PlanFile file = plan::load(argv[1]);
  Arenas arenas(file.plan);
  std::map<int, std::vector<Transfer>> lanes;
  RowLimits limits;
  for (const plan::Program &program : file.plan.programs())
    if (program.name() == argv[3])
      for (const plan::Step &step : program.steps()) {
        if (step.has_write_rows() && arenas.isOnDisk(step.writes(0))) {
          const Transfer &t = lanes[step.lane()].emplace_back(arenas.rowsOf(step));
          limits = {std::max(limits.count, t.rows->count), std::max(limits.rowBytes, t.rows->rowBytes)};
        }
        if (!step.has_copy()) continue;
        if (arenas.isOnDisk(step.reads(0))) lanes[step.lane()].push_back(arenas.transfer(step.writes(0), step.reads(0), false));
        if (arenas.isOnDisk(step.writes(0))) lanes[step.lane()].push_back(arenas.transfer(step.reads(0), step.writes(0), true));
      }
  if (lanes.empty()) throw Error(std::string("program '") + argv[3] + "' of the plan copies nothing from or to disk");
  std::unique_ptr<Storage> storage = openStorage(bench::split(argv[2]), 0);
  storage->allocate(arenas.onDisk);
  std::vector<std::span<std::byte>> registered;
  for (MappedArena &arena : arenas.memory)
    if (!arena.bytes().empty()) registered.push_back(arena.bytes());
  storage->registerMemory(registered);
  for (MappedArena &arena : arenas.memory) bench::fillWithNoise(arena.bytes());
  MappedArena some("first contents", 16 << 20);
  bench::fillWithNoise(some.bytes());
  for (uint64_t at = 0; at < arenas.onDisk; at += some.bytes().size()) // what was never written costs no reading
    storage->write(at, some.bytes().first(std::min<uint64_t>(some.bytes().size(), arenas.onDisk - at)));
  std::unique_ptr<RowWriter> rows;
  if (limits.count > 0) rows = std::make_unique<RowWriter>(*storage, limits);
  stepOf(lanes, *storage, rows.get());
  std::printf("ready\n");
  std::fflush(stdout);
  for (int c = 0; c != '\n' && c != EOF;) c = std::getchar();
  std::vector<double> seconds;
  for (long i = 0; i < std::max(std::strtol(argv[4], nullptr, 10), 1L); ++i) seconds.push_back(stepOf(lanes, *storage, rows.get()));
  double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / double(seconds.size());
  std::ranges::sort(seconds);
  std::printf("%.6f %.6f\n", seconds[seconds.size() / 2], mean);
} catch (const std::exception &error) {
  std::fprintf(stderr, "disk_lanes: %s\n", error.what());
  return 1;
}

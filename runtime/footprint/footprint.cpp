#include "runtime/footprint/footprint.h"
#include "runtime/device/cpu/packing.h"
#include "runtime/device/state.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/state.h"
#include "runtime/process/stacks.h"
#include "runtime/storage/row_writer.h"
#include <algorithm>
#include <numeric>
#include <set>

namespace zero::runtime {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

// Measured, and rounded up: resident pages of zerorun and its libraries with the data that their loading writes; with MPI and its
// components.
constexpr uint64_t kCodeBytes = 17 * kMiB, kCodeOfRanksBytes = 25 * kMiB;
constexpr uint64_t kGeneratedBytes = 5 * kMiB; // machine code that the library of products makes when it is first used, and its tables
constexpr uint64_t kHeapBytes = 2 * kMiB;
// A step in the plan's message, in the program that was resolved and in the one that is bound; a parameter with its names and pieces.
constexpr uint64_t kStepBytes = 1440, kParameterBytes = 4 * kKiB;
constexpr uint64_t kIndexEntryBytes = kKiB;                           // of a checkpoint's index, while it is made or read
constexpr uint64_t kThreadBytes = kMiB, kOtherThreadBytes = kMiB / 8; // stack, heap and tiles of attention; of those that mostly wait
constexpr uint64_t kOtherThreads = 24, kThreadsOfADisk = 8;           // of lanes, signals, disks and ranks; of rows on one disk

bool keepsOnDisk(const plan::Plan &plan) {
  return std::any_of(plan.arenas().begin(), plan.arenas().end(),
                     [](const plan::Arena &a) { return a.tier() == plan::DISK && a.bytes() > 0; });
}

bool isOnDisk(const plan::Plan &plan, const plan::Ref &ref) {
  return plan.arenas(static_cast<int>(plan.buffers(static_cast<int>(ref.buffer())).arena())).tier() == plan::DISK;
}

template <typename Body> void forSteps(const plan::Plan &plan, Body &&body) {
  for (const plan::Program &program : plan.programs())
    for (const plan::Step &step : program.steps()) body(step);
}

uint64_t packing(const plan::Plan &plan) {
  uint64_t most = 0;
  forSteps(plan, [&](const plan::Step &step) {
    if (step.has_matmul() && step.matmul().dtype() == plan::F32)
      most = std::max(most, packingBytes(step.matmul().m(), step.matmul().n(), step.matmul().k()));
  });
  return most;
}

// What products of bf16 and f16 sum and pack in is made before the first step, and kept.
uint64_t halfPacking(const plan::Plan &plan) {
  uint64_t bytes = 0;
  forSteps(plan, [&](const plan::Step &step) {
    if (step.has_matmul() && step.matmul().dtype() != plan::F32) bytes = kHalfPackingBytes;
  });
  return bytes;
}

// What writes rows of tables to disk, with threads of its own where there are no rings.
uint64_t diskRows(const plan::Plan &plan) {
  RowLimits limits;
  forSteps(plan, [&](const plan::Step &step) {
    if (step.has_write_rows() && isOnDisk(plan, step.writes(0)))
      limits = {std::max(limits.count, plan::rowsOf(step)), std::max<uint64_t>(limits.rowBytes, step.write_rows().row_bytes())};
  });
  return limits.count ? limits.stagingBytes() + limits.listBytes() + kThreadsOfADisk * kOtherThreadBytes : 0;
}

// Of attention each thread keeps a number per query beside its tiles, and in bf16 or f16 what it is computed from and summed in as f32:
// for the most queries and keys and the widest heads that there are.
uint64_t attention(const plan::Plan &plan) {
  uint64_t queries = 0, graded = 0, keys = 0, dim = 0;
  bool half = false;
  forSteps(plan, [&](const plan::Step &step) {
    auto look = [&](const auto &shape) {
      queries = std::max<uint64_t>(queries, shape.q_len()), keys = std::max<uint64_t>(keys, shape.kv_len());
      dim = std::max<uint64_t>(dim, shape.dim()), half |= shape.dtype() != plan::F32;
    };
    if (step.has_attention()) look(step.attention());
    if (step.has_attention_grad()) look(step.attention_grad()), graded = queries;
  });
  return graded * sizeof(float) + (half ? halfAttentionBytes(int64_t(queries), int64_t(keys), int64_t(dim)) : 0);
}

uint64_t inputs(const plan::Plan &plan) {
  uint64_t bytes = 0;
  for (const plan::Input &input : plan.inputs()) bytes += input.ref().bytes();
  return bytes;
}

// Each parameter has an entry for each tensor that is kept, and one more wherever a shard ends inside it.
uint64_t index(const plan::Plan &plan) {
  uint64_t tensors = 3, shards = uint64_t(plan.world() - 1) * uint64_t(plan.buckets_size());
  return tensors * (uint64_t(plan.parameters_size()) + shards) * kIndexEntryBytes;
}

} // namespace

uint64_t arenaBytes(const plan::Plan &plan, bool clips) {
  uint64_t bytes = 0;
  clips |= !plan::trains(plan, false);
  for (int a = 0; a < plan.arenas_size(); ++a) {
    const plan::Arena &arena = plan.arenas(a);
    if (arena.tier() == plan::DISK) continue;
    uint64_t most = arena.persistent() ? arena.bytes() : 0;
    if (!arena.persistent())
      for (const plan::Program &program : plan.programs())
        if (clips || !program.clips()) most = std::max<uint64_t>(most, program.arena_bytes(a));
    bytes += most;
  }
  return bytes;
}

std::vector<FootprintPart> besideArenas(const plan::PlanFile &file, int threads) {
  const plan::Plan &plan = file.plan;
  auto compute = static_cast<uint64_t>(std::max(threads, 1)), steps = uint64_t(0);
  forSteps(plan, [&](const plan::Step &) { ++steps; });
  bool disk = keepsOnDisk(plan);
  // A page of an arena has an entry in the table of pages, and one in the tables of both rings if a disk transfers it.
  uint64_t pages = arenaBytes(plan, true) / 4096 * (disk ? 40 : 8);
  std::vector<FootprintPart> parts{
      {"code", "code of zerorun and its libraries", plan.world() > 1 ? kCodeOfRanksBytes : kCodeBytes},
      {"generated", "code that the library of products makes", kGeneratedBytes},
      {"plan", "the plan, and its programs in addresses",
       kHeapBytes + 2 * file.kernels.size() + file.constants.size() + steps * kStepBytes +
           uint64_t(plan.parameters_size()) * kParameterBytes + plan.ByteSizeLong()},
      {"threads", "threads, and their tiles of attention", compute * (kThreadBytes + attention(plan)) + kOtherThreads * kOtherThreadBytes},
      {"inputs", "inputs of two steps", 2 * inputs(plan)},
      {"packing", "operands that products have packed, or state on disk in pieces",
       std::max(compute * packing(plan), disk ? kStagingBytes : 0)},
      {"half", "results of bf16 or f16 while they are summed, with packed operands", compute * halfPacking(plan)},
      {"rows", "blocks of the disk that rows of tables are written to", diskRows(plan)},
      {"pieces", "first values, checkpoints and results in pieces", 2 * kPieceBytes + index(plan)},
      {"system", "tables of pages and rings in the system", kMiB + pages},
  };
  std::erase_if(parts, [](const FootprintPart &part) { return part.bytes == 0; });
  return parts;
}

uint64_t mappedBesideArenas(const plan::PlanFile &file, int threads) {
  uint64_t bytes = 0;
  for (const FootprintPart &part : besideArenas(file, threads))
    if (part.key != "code" && part.key != "system") bytes += part.bytes;
  std::set<int> lanes;
  forSteps(file.plan, [&](const plan::Step &step) { lanes.insert(step.lane()); });
  constexpr uint64_t kTransient = 2; // that read the disk, or a file, ahead
  return bytes + (uint64_t(std::max(threads, 1)) + lanes.size() + kTransient) * kThreadStackBytes;
}

uint64_t bytesOf(const std::vector<FootprintPart> &parts) {
  return std::accumulate(parts.begin(), parts.end(), uint64_t(0), [](uint64_t sum, const FootprintPart &part) { return sum + part.bytes; });
}

} // namespace zero::runtime

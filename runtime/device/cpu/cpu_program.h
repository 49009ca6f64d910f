// A program as the cpu runs it: for each lane its calls, whose places are pointers.
#pragma once
#include "runtime/device/cpu/calls.h"
#include "runtime/device/disk_arenas.h"
#include <array>
#include <functional>
#include <set>
#include <span>
#include <vector>

namespace zero::runtime {

struct CpuOperation {
  Call call;
  uint32_t step, waitBegin, waitEnd; // see Operation
  bool signals;
  const plan::Step *update;
};

// See Entry; operations are counted in their lane.
struct CpuEntry {
  uint32_t after;
  WaitRange inputWaits;
  std::array<std::vector<Entry::Joins>, kLanes> waits;
};

struct CpuProgram {
  const plan::Program *source = nullptr;
  std::array<std::vector<CpuOperation>, kLanes> lanes;
  std::array<uint32_t, kLanes> steps{}; // of each lane: by how much its tick rises, COMPUTE's by two more
  WaitRange resultWaits;
  std::vector<CpuEntry> entries;
  std::array<uint64_t, kLanes> copied{}; // bytes that the lane's steps which do nothing else copy
  std::vector<LaneWait> waits;
  std::vector<void *> args; // of all launches, one after another

  bool communicates(int lane) const;
};

// Where an address in memory is.
using Pointer = std::function<void *(Address)>;

// `disk`: the arenas that do not lie in memory.
CpuProgram boundProgram(const DeviceProgram &program, std::span<const KernelFunction> kernels, const Pointer &pointer,
                        const DiskArenas &disk);

// One operation alone; its launch's arguments are appended to `args`, which must not move.
Call boundCall(const DeviceProgram &program, const Operation &operation, std::span<const KernelFunction> kernels, const Pointer &pointer,
               const DiskArenas &disk, std::vector<void *> &args);

// The memory arenas that copies from and to disk touch.
std::set<uint32_t> copiedWithDisk(std::span<const DeviceProgram> programs, const DiskArenas &disk);

// What of tables' rows is written to disk.
RowLimits rowsToDisk(std::span<const DeviceProgram> programs, const DiskArenas &disk);

// What the executor must be prepared for.
Needs needsOf(std::span<const DeviceProgram> programs);

} // namespace zero::runtime

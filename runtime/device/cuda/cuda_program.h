// A program as the GPU runs it: calls in an order in which they can be put into streams one after another, so that what a call waits for
// has been put there before it.
#pragma once
#include "runtime/device/cuda/collectives.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/host_lane.h"
#include "runtime/device/cuda/kernels.h"
#include "runtime/device/cuda/ordered_sum.h"
#include "runtime/device/cuda/products.h"
#include "runtime/device/disk_arenas.h"
#include <array>
#include <functional>
#include <span>
#include <variant>
#include <vector>

namespace zero::runtime::cuda {

struct LaunchCall {
  const Kernel *kernel;
  uint32_t blocks;
  void **params; // in CudaProgram::params
};
struct ProductRun {
  size_t product; // of Products
};
using CopyCall = CopyOf<Pointer>;
using FillCall = FillOf<Pointer>;
// A transfer between memory of the host and disk: done by a host function, which the driver calls when its turn in the stream has come.
// It waits for nothing but the disk, so that it cannot hold up what it would wait for.
struct DiskCall {
  Storage *storage;
  Failure *failure; // to which it tells what goes wrong; nothing is transferred once there is one
  const plan::Program *program;
  uint32_t step;
  bool writes; // to disk
  uint64_t offset;
  std::byte *memory;
  uint64_t bytes;

  void run() const noexcept;
};
struct Nothing {}; // a collective of one rank in its own place
using Call = std::variant<LaunchCall, ProductRun, CopyCall, FillCall, DiskCall, HostCall, AllGatherOf<Pointer>, ExchangeCall, SumCall,
                          ReduceScatterOf<Pointer>, AllReduceOf<Pointer>, Nothing>;

struct CudaOperation {
  int lane;
  Call call;
  uint32_t step;
  bool begins, signals;        // the first of its step, the last
  uint32_t tick;               // of its lane, as soon as the step is complete
  const plan::Step *update;    // see Operation
  std::vector<LaneWait> waits; // one for each lane at most, and none that an earlier operation of its lane has waited for
};

struct CudaEntry {
  struct Joins {
    uint32_t operation;
    LaneWait wait;
  };
  uint32_t after;
  std::vector<LaneWait> inputWaits;
  std::vector<Joins> waits; // in the order of operations
};

struct CudaProgram {
  const plan::Program *source = nullptr; // null: not to be run
  std::vector<CudaOperation> operations;
  std::vector<LaneWait> resultWaits;
  std::vector<CudaEntry> entries;
  std::array<uint32_t, kLanes> ticks{}; // of each lane, when it is complete; COMPUTE's has one more, for the results that are read
  std::array<bool, kLanes> uses{};      // lanes, COMPUTE always
  std::array<uint64_t, kLanes> moved{}; // bytes that the lane's Copy steps move, and that its collectives send
  std::vector<Pointer> values;          // arguments of all launches
  std::vector<void *> params;           // where each of them is, as the driver wants it
  std::vector<void *> hostArgs;         // arguments of all that the host launches
};

// Where addresses are, for binding.
struct Binding {
  std::function<Pointer(Address)> pointer;
  std::function<std::byte *(Address)> hostMemory; // null if it does not lie in memory of the host
  std::span<const Kernel> kernels;
  const DiskArenas &disk;
  Products *products;                       // null: no program multiplies
  std::array<std::byte *, kLanes> bounce{}; // kPieceBytes for lanes that copy between disk and memory of the device
  Failure *failure;
  uint32_t rank = 0, world = 1;
  std::span<const KernelFunction> hostKernels{}; // counted after `kernels`
};

// Throws a sentence for a step that this runtime does not have yet.
CudaProgram boundProgram(const DeviceProgram &program, const Binding &binding);

// The operations in an order in which each comes after those before it on its lane, and after those it waits for: as near to the given
// one as that allows.
std::vector<uint32_t> submissionOrder(const DeviceProgram &program);

bool communicates(std::span<const DeviceProgram> programs);
// Whether one sums over ranks in their order.
bool sumsInOrder(std::span<const CudaProgram> programs);
// Lanes on which a program multiplies, and on which one copies between disk and memory of the device.
std::array<bool, kLanes> lanesWithProducts(std::span<const DeviceProgram> programs);
std::array<bool, kLanes> lanesThatBounce(std::span<const DeviceProgram> programs, const Binding &binding);

} // namespace zero::runtime::cuda

// The one seam to everything a step runs on. The engine hands over each program once, in addresses, and from then on submits it; how the
// device makes its lanes wait for each other is its own affair: threads that look at ticks, events on streams, a queue of completed
// requests, or a clock. One Device serves one rank, all calls come from one thread, and what a program needs is allocated before the first
// submission.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/program.h"
#include "runtime/device/state.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/storage/storage.h"
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zero::runtime {

using Clock = std::chrono::steady_clock;

// What the plan says of a kernel, and its object must say too (plan.Kernel).
struct KernelSymbol {
  std::string symbol;
  uint64_t extent = 0;
  std::vector<uint64_t> argBytes;
  uint64_t row = 0;
  plan::Grid grid{}; // of a kernel for a GPU
};

// Called with each step of a program that updates a bucket or rows before it runs, by whatever thread; its gradient can be read meanwhile.
using UpdateHook = std::function<void(const plan::Step &update)>;

// Memory of the host that transfers of submissions go from and to, for as long as somebody holds it.
using HostMemory = std::shared_ptr<std::byte[]>;

// Bytes of the host, which lie in HostMemory of the device, and the place in an arena where they go or come from.
struct HostTransfer {
  Address at;
  std::span<std::byte> host;
};

// How many programs may be under way: one that runs, and one into which lanes run on from it.
inline constexpr uint32_t kSubmissions = 2;

// A program to be run after the one submitted before it: as its entry for that says, or when that is complete. What it points at stays as
// it is until it is complete itself.
struct Submission {
  uint32_t program = 0;                     // as prepared
  std::span<const HostTransfer> writes{};   // to the arenas: on lane COMPUTE, before its first operation
  std::span<const HostTransfer> reads{};    // from them: on lane COMPUTE, after its last
  const UpdateHook *beforeUpdate = nullptr; // null: none
  bool trace = false;                       // record an event per step
};

// What a lane did.
struct LaneStats {
  double busySeconds = 0; // inside steps, waiting not counted; a device that would have to stop for it measures traced programs alone
  uint64_t steps = 0;
  uint64_t bytes = 0; // GATHER/REDUCE: bytes sent to other ranks; other lanes: bytes copied
};

struct TraceEvent {
  uint32_t program = 0, step = 0;
  int lane = 0;
  double begin = 0, end = 0; // seconds since the device was prepared
};

struct Completion {
  Clock::time_point submitted, begin, end;
  std::array<LaneStats, kLanes> lanes;
  std::vector<TraceEvent> events; // in order of completion within each lane
};

class Device {
public:
  virtual ~Device() = default;

  // Before the first submission --------------------------------------------------------------------------------------
  // Throws a sentence if kernels compiled for this target cannot run here: another kind of device, or a feature that the
  // machine lacks.
  virtual void requireTarget(const plan::Target &target) = 0;
  // Room for an arena in memory or on disk: zero-filled, 4096-aligned, alive as long as the device. Arenas are numbered from 0 as they are
  // made. Only copies and rows of tables touch one on disk, in whole blocks of 4096 bytes.
  virtual uint32_t allocateArena(const std::string &name, plan::Tier tier, uint64_t bytes) = 0;
  // Loads the plan's code, of the form that the target has: from here on it is run. Throws a sentence for a kernel that is not there, or
  // reaches further or less far than the plan says. LaunchOp::kernel counts all kernels loaded so far.
  virtual void loadKernels(std::span<const std::byte> object, std::span<const KernelSymbol> symbols) = 0;
  // After them all, the kernels of lane UPDATE_HOST, where these are other code: a shared object for the host's processors, which must
  // have the target's `host_features`. Throws the same sentences. A device that is the host has no need of it.
  virtual void loadHostKernels(std::span<const std::byte> object, std::span<const KernelSymbol> symbols, const plan::Target &target);
  // Once: the programs that will be submitted, by their place in the list, which may have gaps without operations. Collective: lanes that
  // communicate get what they need from the factory, in the same order on every rank. The factory and the plan must outlive stop().
  virtual void prepare(std::vector<DeviceProgram> programs, CommunicatorFactory &factory) = 0;

  // Zero-filled memory that transfers reach without another copy on the host; nobody holds it longer than the device lives.
  virtual HostMemory hostMemory(uint64_t bytes);

  // For State: what lies from an address on, while no program runs that touches it.
  virtual void read(Address from, uint64_t bytes, const TakePiece &take) const = 0;
  virtual void write(Address to, uint64_t bytes, const FillPiece &fill) = 0;

  // Programs ---------------------------------------------------------------------------------------------------------
  // Returns at once. At most kSubmissions may be unfinished.
  virtual void submit(const Submission &submission) = 0;
  // Waits for the oldest submission that is not finished yet. Throws zero::Error if a step of it failed; then none that was or will be
  // submitted is run any more (other ranks may wait: call CommunicatorFactory::abort()).
  // The one submitted after it may run meanwhile.
  virtual Completion finish() = 0;
  // Waits for what was submitted and gives up what prepare() made.
  virtual void stop() = 0;

  // Of the host, that this rank may keep busy.
  virtual int threads() const = 0;
  // Since it was made, by copies of programs and by read() and write().
  virtual DiskTraffic diskTraffic() const { return {}; }
  // What people should know of how it runs, a sentence each: that it does something in a slower way than it could, and why. Known when all
  // arenas are there.
  virtual std::vector<std::string> notes() const { return {}; }
};

} // namespace zero::runtime

// Runs the programs of a plan on one rank, on the device it was given.
//
// Everything is decided in the constructor: arenas are allocated, every Ref becomes an address of this rank, constants
// are copied in, and the device prepares all programs. From then on they are submitted, and nothing is allocated.
//
//   auto factory = connect();                                    // comm/communicator.h
//   auto file = plan::load("plan.bin");
//   auto device = makeCpuDevice({.threads = 2});                 // device/cpu/cpu_device.h
//   Engine engine(file, *device, *factory, {});
//   HostMemory memory = engine.hostMemory(…);                    // of which `batch` and `loss` are parts
//   std::vector<HostTransfer> writes{engine.transfer(input.ref(), batch)}, reads{engine.transfer(program.loss(), loss)};
//   engine.submit({.program = 0, .writes = writes, .reads = reads});
//   …                                                            // the next batch
//   engine.finish();
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/plan/container.h"
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace zero::runtime {

struct EngineOptions {
  std::vector<uint32_t> programs{}; // indices of the programs that will be run; empty: all of them
  bool trace = false;               // record one TraceEvent per step of every program
  std::vector<uint32_t> groups{};   // for each of the plan's parameters, the hyper-parameters its update takes: 0 those of the HYPER
                                    // input, g > 0 those of hyperTransfer(g). Empty: 0 for all, at no cost
};

// Throws a sentence that says how to start it if the plan is for another number of ranks than `world`.
void requireWorld(const plan::PlanFile &file, int world);
// Throws a sentence if the plan names kernels and has none of their code.
void requireCode(const plan::PlanFile &file);

class Engine : public State {
public:
  // The plan must have come from plan::load or have passed plan::validate. It, the device and the factory must outlive the
  // engine. Collective; throws zero::Error if the plan is not for this device or number of ranks, or memory does not suffice.
  Engine(const plan::PlanFile &file, Device &device, CommunicatorFactory &factory, const EngineOptions &options);
  ~Engine() override;
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  // Of what no program under way touches, and in an UpdateHook of its gradient. A transient buffer keeps its contents only until the next
  // program.
  using State::read, State::write;
  void read(const plan::Ref &from, uint64_t offset, uint64_t bytes, const TakePiece &take) const override;
  void write(const plan::Ref &to, uint64_t offset, uint64_t bytes, const FillPiece &fill) override;

  // For submissions: memory of the host (device.h), of which `host`, as long as the Ref, goes to it or comes from it.
  HostMemory hostMemory(uint64_t bytes);
  HostTransfer transfer(const plan::Ref &ref, std::span<std::byte> host) const;
  // Hyper-parameters of group `group` > 0, f32[16] like the HYPER input: to be written before each program that updates.
  HostTransfer hyperTransfer(uint32_t group, std::span<std::byte> host) const;

  // Runs a program after those submitted before it; returns at once (device.h). `trace` is the engine's own.
  void submit(Submission submission);
  // Waits for the oldest that is not finished. Throws zero::Error if a step failed; the engine must then not be used again (other ranks
  // may wait: call CommunicatorFactory::abort()).
  Completion finish();
  // Both.
  void run(uint32_t program, const UpdateHook &beforeUpdate = {});

  // Of all programs finished since resetStats(), or clearTrace().
  const std::array<LaneStats, kLanes> &stats() const;
  void resetStats();
  const std::vector<TraceEvent> &trace() const; // in order of completion within each lane and program
  void clearTrace();
  void endTrace(); // what is submitted from here on is not recorded

  uint64_t allocatedBytes() const; // sum over arenas in memory
  uint64_t diskBytes() const;      // and over those on disk

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace zero::runtime

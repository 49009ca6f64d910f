// Runs the programs of a plan on one rank: one thread per lane in use, COMPUTE on the calling thread.
//
// Everything is decided in the constructor: arenas are allocated, every Ref becomes an address of this rank, constants
// are copied in. run() then walks arrays; it neither allocates nor locks beyond what waiting for a lane needs.
//
//   auto factory = connect();                                    // comm/communicator.h
//   auto file = plan::load("plan.bin");
//   auto device = makeCpuDevice({.threads = 2});                 // device/cpu/cpu_device.h
//   Engine engine(file, *device, *factory, {});
//   engine.write(input.ref(), 0, batch);
//   engine.run(0);
//   float loss = engine.scalar(program.loss());
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"
#include "runtime/plan/container.h"
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zero::runtime {

inline constexpr int kLanes = 8; // plan.Lane

struct EngineOptions {
  std::vector<uint32_t> programs{}; // indices of the programs that will be run; empty: all of them
  bool trace = false;               // record one TraceEvent per step
  std::vector<uint32_t> groups{};   // for each of the plan's parameters, the hyper-parameters its update takes: 0 those of the HYPER
                                    // input, g > 0 those of Engine::writeHyper(g). Empty: 0 for all, at no cost
};

// What a lane has done since the last resetStats().
struct LaneStats {
  double busySeconds = 0; // inside steps, waiting not counted
  uint64_t steps = 0;
  uint64_t bytes = 0; // GATHER/REDUCE: bytes sent to other ranks; other lanes: bytes copied
};

struct TraceEvent {
  uint32_t program = 0, step = 0;
  int lane = 0;
  double begin = 0, end = 0; // seconds since the engine was made
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

  int rank() const;
  int world() const;

  // Between runs, and of its gradient in an UpdateHook. A transient buffer keeps its contents only until the next run.
  using State::read, State::write;
  void read(const plan::Ref &from, uint64_t offset, uint64_t bytes, const TakePiece &take) const override;
  void write(const plan::Ref &to, uint64_t offset, uint64_t bytes, const FillPiece &fill) override;

  // Hyper-parameters of group `group` > 0, like the HYPER input: written before each program that updates.
  void writeHyper(uint32_t group, std::span<const float, 16> values);

  // Runs a whole program; all lanes are drained when it returns. Throws zero::Error if a step failed; the engine
  // must then not be used again (other ranks may wait: call CommunicatorFactory::abort()).
  void run(uint32_t program);

  // Called with every step that is an update before it runs, on the lane's thread, while set; pass nullptr to remove it.
  // Its gradient can be read then.
  using UpdateHook = std::function<void(const plan::Step &update)>;
  void onUpdate(UpdateHook hook);

  // A communicator for the host's own use (checkpoints, agreement on errors); same thread that calls run().
  Communicator &communicator();

  std::array<LaneStats, kLanes> stats() const;
  void resetStats();
  const std::vector<TraceEvent> &trace() const; // in order of completion within each lane
  void clearTrace();

  uint64_t allocatedBytes() const; // sum over arenas

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace zero::runtime

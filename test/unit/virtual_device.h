// A device that proves the seam to be one: it completes what it is given in any order that the waits allow, drawn from a seed, on a clock
// of its own. What it runs gives the bits of the cpu only if every wait that is needed is there:
//   - an operation begins and ends when the draw says so, not when the one before it in the plan has ended;
//   - what it writes is garbage from its beginning to its end;
//   - what it reads is read at its beginning or at its end, whichever is drawn;
//   - a transfer to the host arrives when the submission is complete, and is garbage until then;
//   - a submission's inputs must not change before it is complete.
// Ranks of one run are given one seed, so that they call their collectives in one order.
#pragma once
#include "runtime/device/cpu/cpu_program.h"
#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/kernel_library.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/device/device.h"
#include "runtime/judge/problem.h"
#include "runtime/plan/error.h"
#include <cstring>
#include <deque>
#include <memory>
#include <random>

namespace zero::test {

class VirtualDevice final : public runtime::Device {
public:
  VirtualDevice(const plan::Plan &plan, uint64_t seed) : plan(plan), random(seed), executor(1) {}

  void requireTarget(const plan::Target &) override {}
  uint32_t allocateArena(const std::string &name, plan::Tier, uint64_t bytes) override { // all tiers in memory
    arenas.emplace_back(name, bytes);
    return static_cast<uint32_t>(arenas.size() - 1);
  }
  void loadKernels(std::span<const std::byte> object, std::span<const runtime::KernelSymbol> symbols) override {
    library = std::make_unique<runtime::KernelLibrary>(object, symbols);
  }
  void prepare(std::vector<runtime::DeviceProgram> given, runtime::CommunicatorFactory &factory) override {
    programs = std::move(given);
    rank = static_cast<uint64_t>(factory.rank());
    executor.prepare(runtime::needsOf(programs));
    for (auto &communicator : communicators) communicator = factory.create();
  }

  void read(runtime::Address from, uint64_t bytes, const runtime::TakePiece &take) const override {
    runtime::lendPieces(static_cast<const std::byte *>(pointer(from)), bytes, take);
  }
  void write(runtime::Address to, uint64_t bytes, const runtime::FillPiece &fill) override {
    runtime::lendPieces(pointer(to), bytes, fill);
  }

  void submit(const runtime::Submission &submission) override {
    if (underWay.size() == runtime::kSubmissions) throw Error("too many submissions");
    underWay.push_back({submission, {}});
    for (const runtime::HostTransfer &write : submission.writes) underWay.back().inputs.emplace_back(write.host.begin(), write.host.end());
    for (const runtime::HostTransfer &read : submission.reads) poison(read.host);
  }

  runtime::Completion finish() override {
    auto [submission, inputs] = std::move(underWay.front());
    underWay.pop_front();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const runtime::HostTransfer &write = submission.writes[i];
      if (!std::equal(inputs[i].begin(), inputs[i].end(), write.host.begin())) throw Error("the host changed an input under way");
      std::copy(inputs[i].begin(), inputs[i].end(), pointer(write.at));
    }
    runtime::Completion completion{};
    completion.submitted = completion.begin = runtime::Clock::time_point(std::chrono::nanoseconds(now));
    simulate(submission);
    completion.end = runtime::Clock::time_point(std::chrono::nanoseconds(now));
    for (const runtime::HostTransfer &read : submission.reads) std::memcpy(read.host.data(), pointer(read.at), read.host.size());
    return completion;
  }

  void stop() override {
    underWay.clear();
    for (auto &communicator : communicators) communicator.reset();
  }
  int threads() const override { return 1; }

private:
  struct UnderWay {
    runtime::Submission submission;
    std::vector<std::vector<std::byte>> inputs; // as they were
  };

  struct Lane {
    std::vector<const runtime::Operation *> operations;
    size_t next = 0;      // of them
    uint32_t tick = 0;    // steps complete
    bool ready = false;   // the next one may begin, at `at`
    bool running = false; // it has begun, and ends at `at`
    uint64_t at = 0;      // of the clock
    bool early = false;   // it has read already, and `kept` is what it will have written; else `kept` is what was there
    std::vector<std::vector<std::byte>> kept;
  };

  static void poison(std::span<std::byte> bytes) { std::fill(bytes.begin(), bytes.end(), std::byte(0xff)); } // NaNs

  std::byte *pointer(runtime::Address address) const { return arenas[address.arena].data() + address.offset; }

  std::vector<std::span<std::byte>> written(const runtime::DeviceProgram &program, const runtime::Operation &operation) const {
    std::vector<std::span<std::byte>> ranges;
    for (const judge::Access &access : judge::accessesOf(plan, program.source->steps(static_cast<int>(operation.step)), rank)) {
      const plan::Buffer &buffer = plan.buffers(static_cast<int>(access.buffer));
      if (access.writes) ranges.emplace_back(pointer({buffer.arena(), buffer.offset() + access.begin}), access.end - access.begin);
    }
    return ranges;
  }

  void execute(const runtime::DeviceProgram &program, const runtime::Operation &operation) {
    std::vector<void *> args;
    args.reserve(program.args.size());
    std::span<const runtime::KernelFunction> kernels;
    if (library) kernels = library->functions();
    executor.run(boundCall(
                     program, operation, kernels, [this](runtime::Address a) { return pointer(a); }, disk, args),
                 communicators[static_cast<size_t>(operation.lane)].get());
  }

  void begin(const runtime::DeviceProgram &program, Lane &lane, const runtime::Submission &submission) {
    const runtime::Operation &operation = *lane.operations[lane.next];
    if (operation.update && submission.beforeUpdate) (*submission.beforeUpdate)(*operation.update);
    lane.early = random() % 2 == 0;
    if (lane.early) execute(program, operation);
    lane.kept.clear();
    for (std::span<std::byte> range : written(program, operation)) lane.kept.emplace_back(range.begin(), range.end());
    for (std::span<std::byte> range : written(program, operation)) poison(range);
    lane.ready = false, lane.running = true, lane.at = now + 1 + random() % 1000;
  }

  void end(const runtime::DeviceProgram &program, Lane &lane) {
    const runtime::Operation &operation = *lane.operations[lane.next];
    auto ranges = written(program, operation);
    for (size_t i = 0; i < ranges.size(); ++i) std::copy(lane.kept[i].begin(), lane.kept[i].end(), ranges[i].begin());
    if (!lane.early) execute(program, operation);
    lane.running = false, ++lane.next;
    lane.tick += operation.signals;
  }

  void simulate(const runtime::Submission &submission) {
    const runtime::DeviceProgram &program = programs[submission.program];
    std::array<Lane, runtime::kLanes> lanes;
    for (const runtime::Operation &operation : program.operations)
      lanes[static_cast<size_t>(operation.lane)].operations.push_back(&operation);
    auto mayBegin = [&](const Lane &lane) {
      if (lane.ready || lane.running || lane.next == lane.operations.size()) return false;
      const runtime::Operation &operation = *lane.operations[lane.next];
      return std::all_of(program.waits.begin() + operation.waitBegin, program.waits.begin() + operation.waitEnd,
                         [&](const runtime::LaneWait &wait) { return lanes[static_cast<size_t>(wait.lane)].tick >= wait.tick; });
    };
    for (;;) {
      Lane *first = nullptr;
      for (Lane &lane : lanes) {
        if (mayBegin(lane)) lane.ready = true, lane.at = now + random() % 1000;
        if ((lane.ready || lane.running) && (!first || lane.at < first->at)) first = &lane;
      }
      if (!first) break;
      now = first->at;
      if (first->ready)
        begin(program, *first, submission);
      else
        end(program, *first);
    }
    for (const Lane &lane : lanes)
      if (lane.next < lane.operations.size()) throw Error("an operation waits for what never comes");
  }

  const plan::Plan &plan;
  std::mt19937_64 random;
  uint64_t rank = 0, now = 0;
  std::vector<runtime::MappedArena> arenas;
  runtime::DiskArenas disk{{}, 0}; // none
  std::unique_ptr<runtime::KernelLibrary> library;
  std::vector<runtime::DeviceProgram> programs;
  std::array<std::unique_ptr<runtime::Communicator>, runtime::kLanes> communicators;
  runtime::Executor executor;
  std::deque<UnderWay> underWay;
};

} // namespace zero::test

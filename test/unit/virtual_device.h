// A device that proves the seam to be one: it completes what it is given in any order that the waits allow, drawn from a seed, on a clock
// of its own. What it runs gives the bits of the cpu only if every wait that is needed is there:
//   - an operation begins and ends when the draw says so, not when the one before it in the plan has ended, and those of the next program
//     between those of the one before it; some lanes are much slower than others;
//   - what it writes is garbage from its beginning to its end;
//   - what it reads is read at its beginning or at its end, whichever is drawn;
//   - transfers are operations of lane COMPUTE like others; one to the host arrives when the submission is complete, and is garbage until
//     then;
//   - a submission's inputs must not change before it is complete.
// Ranks of one run are given one seed, so that they call their collectives in one order.
#pragma once
#include "runtime/base/error.h"
#include "runtime/device/cpu/cpu_program.h"
#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/kernel_library.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/device/device.h"
#include "runtime/judge/problem.h"
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>

namespace zero::test {

class VirtualDevice final : public runtime::Device {
public:
  VirtualDevice(const plan::Plan &plan, uint64_t seed) : plan(plan), random(seed), executor(1) {
    for (uint64_t &time : longest) time = random() % 4 ? 1000 : 50000;
  }

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
    const runtime::DeviceProgram &program = programs[submission.program];
    Running &run = underWay.emplace_back();
    run.submission = submission, run.program = &program;
    for (const runtime::Entry &entry : program.entries)
      if (last && entry.after == *last) run.entry = &entry;
    last = submission.program;
    run.lanes[plan::COMPUTE].operations.push_back(nullptr); // the transfers from the host
    for (const runtime::Operation &operation : program.operations)
      run.lanes[static_cast<size_t>(operation.lane)].operations.push_back(&operation);
    run.lanes[plan::COMPUTE].operations.push_back(nullptr); // and those to it
    for (const runtime::HostTransfer &write : submission.writes) run.inputs.emplace_back(write.host.begin(), write.host.end());
    for (const runtime::HostTransfer &read : submission.reads) {
      run.results.emplace_back(read.host.size());
      poison(read.host);
    }
  }

  runtime::Completion finish() override {
    simulate();
    Running &run = underWay.front();
    for (size_t i = 0; i < run.inputs.size(); ++i)
      if (!std::equal(run.inputs[i].begin(), run.inputs[i].end(), run.submission.writes[i].host.begin()))
        throw Error("the host changed an input under way");
    for (size_t i = 0; i < run.results.size(); ++i)
      std::copy(run.results[i].begin(), run.results[i].end(), run.submission.reads[i].host.begin());
    runtime::Completion completion{};
    completion.submitted = completion.begin = completion.end = runtime::Clock::time_point(std::chrono::nanoseconds(now));
    underWay.pop_front();
    return completion;
  }

  void stop() override {
    underWay.clear();
    for (auto &communicator : communicators) communicator.reset();
  }
  int threads() const override { return 1; }

private:
  struct Lane {
    std::vector<const runtime::Operation *> operations; // null: the host's transfers
    size_t next = 0;                                    // of them
    uint32_t steps = 0;                                 // complete, the host's transfers included
    bool ready = false;                                 // the next one may begin, at `at`
    bool running = false;                               // it has begun, and ends at `at`
    uint64_t at = 0;                                    // of the clock
    bool early = false; // it has read already, and `kept` is what it will have written; else `kept` is what was there
    std::vector<std::vector<std::byte>> kept;
    bool done() const { return next == operations.size(); }
  };

  struct Running {
    runtime::Submission submission;
    const runtime::DeviceProgram *program = nullptr;
    const runtime::Entry *entry = nullptr; // null: after all that was submitted before
    std::array<Lane, runtime::kLanes> lanes;
    std::vector<std::vector<std::byte>> inputs, results; // as they were, and will be
    bool done() const { return std::ranges::all_of(lanes, &Lane::done); }
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

  // What the host's transfers write in an arena, or take from it.
  void transfer(Running &run, bool inputs, bool poisoned) const {
    for (size_t i = 0; inputs && i < run.inputs.size(); ++i) {
      std::span<std::byte> to(pointer(run.submission.writes[i].at), run.inputs[i].size());
      poisoned ? poison(to) : static_cast<void>(std::ranges::copy(run.inputs[i], to.begin()));
    }
    for (size_t i = 0; !inputs && i < run.results.size(); ++i)
      std::memcpy(run.results[i].data(), pointer(run.submission.reads[i].at), run.results[i].size());
  }

  void begin(Running &run, Lane &lane) {
    lane.ready = false, lane.running = true, lane.at = now + 1 + random() % longest[static_cast<size_t>(&lane - run.lanes.data())];
    lane.early = random() % 2 == 0;
    const runtime::Operation *operation = lane.operations[lane.next];
    if (!operation) {
      if (lane.next == 0 || lane.early) transfer(run, lane.next == 0, true);
      return;
    }
    if (operation->update && run.submission.beforeUpdate) (*run.submission.beforeUpdate)(*operation->update);
    if (lane.early) execute(*run.program, *operation);
    lane.kept.clear();
    for (std::span<std::byte> range : written(*run.program, *operation)) lane.kept.emplace_back(range.begin(), range.end());
    for (std::span<std::byte> range : written(*run.program, *operation)) poison(range);
  }

  void end(Running &run, Lane &lane) {
    const runtime::Operation *operation = lane.operations[lane.next];
    if (!operation) {
      if (lane.next == 0 || !lane.early) transfer(run, lane.next == 0, false);
    } else {
      auto ranges = written(*run.program, *operation);
      for (size_t i = 0; i < ranges.size(); ++i) std::copy(lane.kept[i].begin(), lane.kept[i].end(), ranges[i].begin());
      if (!lane.early) execute(*run.program, *operation);
    }
    lane.running = false, ++lane.next;
    lane.steps += !operation || operation->signals;
  }

  // `before`: the program submitted before it, if that is not finished.
  static bool mayBegin(const Running &run, size_t index, const Running *before) {
    const Lane &lane = run.lanes[index];
    if (lane.ready || lane.running || lane.done() || (before && !before->lanes[index].done())) return false;
    auto reached = [](const Running &in, const runtime::LaneWait &wait) {
      return in.lanes[static_cast<size_t>(wait.lane)].steps >= wait.tick + (wait.lane == plan::COMPUTE);
    };
    auto all = [&](const Running &in, runtime::WaitRange range) {
      return std::all_of(run.program->waits.begin() + range.begin, run.program->waits.begin() + range.end,
                         [&](const runtime::LaneWait &wait) { return reached(in, wait); });
    };
    bool first = lane.next == 0, compute = index == plan::COMPUTE;
    if (!run.entry && first && (compute ? before && !before->done() : run.lanes[plan::COMPUTE].steps == 0)) return false;
    const runtime::Operation *operation = lane.operations[lane.next];
    if (!operation && first) return !before || !run.entry || all(*before, run.entry->inputWaits);
    if (!operation) return all(run, run.program->resultWaits);
    if (!all(run, {operation->waitBegin, operation->waitEnd})) return false;
    if (!before || !run.entry) return true;
    auto number = static_cast<uint32_t>(operation - run.program->operations.data());
    return std::ranges::all_of(
        run.entry->waits, [&](const runtime::Entry::Joins &joins) { return joins.operation != number || reached(*before, joins.wait); });
  }

  // Until the oldest submission is complete.
  void simulate() {
    while (!underWay.front().done()) {
      Running *of = nullptr;
      Lane *first = nullptr;
      for (size_t r = 0; r < underWay.size(); ++r)
        for (size_t index = 0; index < runtime::kLanes; ++index) {
          Lane &lane = underWay[r].lanes[index];
          if (mayBegin(underWay[r], index, r ? &underWay[r - 1] : nullptr)) lane.ready = true, lane.at = now + random() % 1000;
          if ((lane.ready || lane.running) && (!first || lane.at < first->at)) first = &lane, of = &underWay[r];
        }
      if (!first) throw Error("an operation waits for what never comes");
      now = std::max(now, first->at);
      if (first->ready)
        begin(*of, *first);
      else
        end(*of, *first);
    }
  }

  const plan::Plan &plan;
  std::mt19937_64 random;
  uint64_t rank = 0, now = 0;
  std::array<uint64_t, runtime::kLanes> longest{}; // that an operation of a lane takes: some lanes are slow
  std::vector<runtime::MappedArena> arenas;
  runtime::DiskArenas disk{{}, 0}; // none
  std::unique_ptr<runtime::KernelLibrary> library;
  std::vector<runtime::DeviceProgram> programs;
  std::array<std::unique_ptr<runtime::Communicator>, runtime::kLanes> communicators;
  runtime::Executor executor;
  std::deque<Running> underWay;
  std::optional<uint32_t> last; // program that was submitted
};

} // namespace zero::test

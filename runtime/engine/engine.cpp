#include "runtime/engine/engine.h"
#include "runtime/engine/lane.h"
#include "runtime/engine/resolve.h"
#include "runtime/engine/timeline.h"
#include "runtime/plan/error.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/start_thread.h"
#include "runtime/plan/state.h"
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>

namespace zero::runtime {
namespace {

static_assert(kLanes == Timeline::kLanes && kLanes == plan::Lane_ARRAYSIZE);

std::string nameOf(const plan::PlanFile &file) { return file.path.empty() ? "the plan" : "'" + file.path + "'"; }

// Refuses, by name, plans that are fine but not for this run or not built yet.
void requireServable(const plan::PlanFile &file, const CommunicatorFactory &factory, Device &device) {
  device.requireTarget(file.plan.target());
  requireWorld(file, factory.world());
  requireCode(file);
  if (file.plan.axes_size() > 1)
    throw Error(nameOf(file) + " spreads its ranks over the axes " + plan::axesText(file.plan) +
                ", and more than one axis is not built yet; compile for data-parallel ranks alone (zeroc --world N)");
  for (const plan::Arena &arena : file.plan.arenas())
    if (arena.tier() == plan::DISK && arena.bytes() > 0)
      throw Error(nameOf(file) + " keeps arena '" + arena.name() +
                  "' on disk, which is not built yet; compile with --offload-params none --offload-optimizer none");
  for (const plan::Bucket &bucket : file.plan.buckets())
    for (const plan::StateTensor &tensor : bucket.tensors())
      if (tensor.dtype() != plan::F32)
        throw Error(nameOf(file) + " keeps the " + plan::roleName(tensor.role()) + " of bucket '" + bucket.name() + "' in " +
                    plan::DType_Name(tensor.dtype()) + ", which is not built yet; compile with --precision f32");
}

} // namespace

void requireWorld(const plan::PlanFile &file, int world) {
  uint32_t ranks = file.plan.world();
  if (ranks == static_cast<uint32_t>(world)) return;
  std::string start = ranks == 1 ? "zerorun " : "mpirun -np " + std::to_string(ranks) + " zerorun ";
  throw Error(nameOf(file) + " was compiled for " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + ", but this run has " +
              std::to_string(world) + "; start it with `" + start + (file.path.empty() ? "plan.bin" : file.path) +
              "`, or compile with --world " + std::to_string(world));
}

void requireCode(const plan::PlanFile &file) {
  if (file.kernels.empty() && file.plan.kernels_size() > 0)
    throw Error(nameOf(file) +
                " has no machine code (zeroc --no-kernels): it can be read, with zero-inspect, but not run; compile the model "
                "again without --no-kernels");
}

struct Engine::Impl {
  Impl(const plan::PlanFile &file, Device &device, CommunicatorFactory &factory, const EngineOptions &options)
      : file(file), plan(file.plan), device(device), rank(factory.rank()), world(factory.world()) {
    requireServable(file, factory, device);
    std::vector<uint32_t> selected = options.programs;
    if (selected.empty()) {
      selected.resize(static_cast<size_t>(plan.programs_size()));
      std::iota(selected.begin(), selected.end(), 0u);
    }
    for (uint32_t index : selected)
      if (index >= static_cast<uint32_t>(plan.programs_size()))
        throw Error("program " + std::to_string(index) + " was asked for, but the plan has " + std::to_string(plan.programs_size()));
    allocateArenas(selected);
    // Whether the memory suffices is asked before anyone fills it: ranks share machines.
    host = factory.create();
    host->barrier();
    for (const plan::Constant &constant : plan.constants())
      writeConstant(constant);
    for (const plan::Kernel &kernel : plan.kernels())
      kernels.push_back({kernel.symbol(), nullptr, kernel.extent(), {kernel.arg_bytes().begin(), kernel.arg_bytes().end()}, kernel.row()});
    if (!kernels.empty()) device.loadKernels(file.kernels, kernels);
    device.prepare(attentionLimits(plan, selected));
    makeGroups(options.groups, selected);
    programs.resize(static_cast<size_t>(plan.programs_size()));
    for (uint32_t index : selected)
      programs[index] = resolve(
          plan, plan.programs(static_cast<int>(index)), kernels, [this](const plan::Ref &ref) { return pointer(ref); }, groups,
          static_cast<uint64_t>(rank));
    makeLanes(factory, options.trace);
    startLanes();
  }

  ~Impl() { endLanes(); }

  void startLanes() {
    try {
      for (int index = 1; index < kLanes; ++index)
        if (lanes[static_cast<size_t>(index)])
          threads.push_back(startThread("the thread of lane " + plan::Lane_Name(static_cast<plan::Lane>(index)),
                                        [this, index] { laneThread(*lanes[static_cast<size_t>(index)]); }));
    } catch (...) {
      endLanes();
      throw;
    }
  }

  void endLanes() {
    closing.store(true, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
    for (std::thread &thread : threads) thread.join();
  }

  void allocateArenas(const std::vector<uint32_t> &selected) {
    for (int i = 0; i < plan.arenas_size(); ++i) {
      const plan::Arena &arena = plan.arenas(i);
      uint64_t bytes = arena.persistent() ? arena.bytes() : 0;
      if (!arena.persistent())
        for (uint32_t index : selected) bytes = std::max<uint64_t>(bytes, plan.programs(static_cast<int>(index)).arena_bytes(i));
      arenas.push_back(bytes ? std::optional(device.allocateArena(arena.name(), bytes)) : std::nullopt);
      allocated += bytes;
    }
  }

  // A few pages beside the plan's arenas: hyper-parameters of each group, and room for iterations that several groups share.
  void makeGroups(const std::vector<uint32_t> &of, const std::vector<uint32_t> &selected) {
    if (std::all_of(of.begin(), of.end(), [](uint32_t group) { return group == 0; })) return;
    groups.of = of;
    uint64_t count = *std::max_element(of.begin(), of.end()), room = scratchBytes(plan, selected);
    constexpr uint64_t kHyperBytes = 16 * sizeof(float);
    auto *at = static_cast<std::byte *>(device.pointer({device.allocateArena("parameter groups", count * kHyperBytes + kLanes * room), 0}));
    for (const plan::Input &input : plan.inputs())
      if (input.role() == plan::Input::HYPER) groups.hyper = {static_cast<float *>(pointer(input.ref()))};
    if (groups.hyper.empty()) throw Error(nameOf(file) + " has no input for hyper-parameters, so no parameter can have others");
    for (uint64_t g = 0; g < count; ++g, at += kHyperBytes) groups.hyper.push_back(reinterpret_cast<float *>(at));
    for (int lane = 0; lane < kLanes; ++lane, at += room) groups.scratch.push_back(at);
  }

  // Nothing for what is empty in an empty arena.
  std::optional<Address> address(const plan::Ref &ref) const {
    const plan::Buffer &buffer = plan.buffers(static_cast<int>(ref.buffer()));
    if (!arenas[buffer.arena()]) return std::nullopt;
    return Address{*arenas[buffer.arena()], buffer.offset() + plan::offsetOf(plan, ref, static_cast<uint64_t>(rank))};
  }

  void *pointer(const plan::Ref &ref) const {
    std::optional<Address> at = address(ref);
    return at ? device.pointer(*at) : nullptr;
  }

  Address part(const plan::Ref &ref, uint64_t offset, uint64_t bytes) const {
    std::optional<Address> at = address(ref);
    if (!at || offset > ref.bytes() || bytes > ref.bytes() - offset)
      throw Error("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) + " of a part of buffer '" +
                  plan.buffers(static_cast<int>(ref.buffer())).name() + "' were asked for, which has " + std::to_string(ref.bytes()) +
                  ": this is an error in zerorun");
    return {at->arena, at->offset + offset};
  }

  void writeConstant(const plan::Constant &constant) {
    const std::byte *values = file.constants.data() + constant.segment_offset();
    if (uint64_t bytes = constant.ref().bytes(); bytes > 0)
      device.write(part(constant.ref(), 0, bytes), bytes, [&](uint64_t first, std::span<std::byte> piece) {
        std::copy_n(values + first, piece.size(), piece.begin());
      });
  }

  void makeLanes(CommunicatorFactory &factory, bool trace) {
    context.plan = &plan;
    context.device = &device;
    context.timeline = &timeline;
    context.start = Clock::now();
    context.trace = trace;
    context.onFailure = [this] {
      for (auto &lane : lanes)
        if (lane) lane->interrupt();
    };
    // Making a communicator is collective: every rank goes through the same lanes of the same plan.
    for (int index = 0; index < kLanes; ++index) {
      bool used = index == plan::COMPUTE, communicates = false;
      for (const auto &program : programs)
        if (program) {
          used = used || !program->lanes[static_cast<size_t>(index)].empty();
          communicates = communicates || program->communicates(index);
        }
      if (used) lanes[static_cast<size_t>(index)] = std::make_unique<Lane>(index, context, communicates ? factory.create() : nullptr);
    }
  }

  void laneThread(Lane &lane) {
    for (uint32_t seen = 0;;) {
      seen = awaitNext(generation, seen);
      if (closing.load(std::memory_order_relaxed)) return;
      lane.run(current, *programs[current]);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }

  static uint32_t awaitNext(const std::atomic<uint32_t> &word, uint32_t seen) {
    uint32_t value;
    while ((value = awaitChange(word, seen)) == seen) {
    }
    return value;
  }

  void run(uint32_t index) {
    if (index >= programs.size() || !programs[index])
      throw Error("program " + std::to_string(index) + " was not selected when the engine was made");
    if (timeline.hasFailed()) throw Error("the engine cannot run after a step has failed");
    const ResolvedProgram &program = *programs[index];
    if (context.trace)
      for (int i = 0; i < kLanes; ++i)
        if (auto &lane = lanes[static_cast<size_t>(i)]) lane->events.reserve(program.lanes[static_cast<size_t>(i)].size());
    timeline.reset();
    current = index;
    running.store(static_cast<uint32_t>(threads.size()), std::memory_order_relaxed);
    if (!threads.empty()) {
      generation.fetch_add(1, std::memory_order_release);
      generation.notify_all();
    }
    lanes[plan::COMPUTE]->run(index, program);
    for (uint32_t left; (left = running.load(std::memory_order_acquire)) != 0;) awaitChange(running, left);
    if (context.trace)
      for (auto &lane : lanes)
        if (lane) {
          events.insert(events.end(), lane->events.begin(), lane->events.end());
          lane->events.clear();
        }
    if (timeline.hasFailed()) std::rethrow_exception(timeline.reason());
  }

  const plan::PlanFile &file;
  const plan::Plan &plan;
  Device &device;
  int rank, world;
  std::vector<std::optional<uint32_t>> arenas; // the device's number of each; none for an empty one
  uint64_t allocated = 0;
  std::vector<KernelSymbol> kernels;
  ParameterGroups groups;
  std::vector<std::unique_ptr<ResolvedProgram>> programs; // null: not selected
  Timeline timeline;
  LaneContext context;
  std::unique_ptr<Communicator> host;
  std::array<std::unique_ptr<Lane>, kLanes> lanes;
  std::vector<TraceEvent> events;

  std::atomic<uint32_t> generation{0}; // moves once per run
  std::atomic<uint32_t> running{0};    // lane threads inside the program
  std::atomic<bool> closing{false};
  uint32_t current = 0;
  std::vector<std::thread> threads;
};

Engine::Engine(const plan::PlanFile &file, Device &device, CommunicatorFactory &factory, const EngineOptions &options)
    : impl(std::make_unique<Impl>(file, device, factory, options)) {}
Engine::~Engine() = default;

int Engine::rank() const { return impl->rank; }
int Engine::world() const { return impl->world; }
void Engine::read(const plan::Ref &from, uint64_t offset, uint64_t bytes, const TakePiece &take) const {
  if (bytes > 0) impl->device.read(impl->part(from, offset, bytes), bytes, take);
}
void Engine::write(const plan::Ref &to, uint64_t offset, uint64_t bytes, const FillPiece &fill) {
  if (bytes > 0) impl->device.write(impl->part(to, offset, bytes), bytes, fill);
}
void Engine::writeHyper(uint32_t group, std::span<const float, 16> values) {
  std::copy(values.begin(), values.end(), impl->groups.hyper.at(group));
}
void Engine::run(uint32_t program) { impl->run(program); }
void Engine::onUpdate(UpdateHook hook) { impl->context.hook = std::move(hook); }
Communicator &Engine::communicator() { return *impl->host; }

std::array<LaneStats, kLanes> Engine::stats() const {
  std::array<LaneStats, kLanes> result;
  for (size_t i = 0; i < kLanes; ++i)
    if (impl->lanes[i]) result[i] = impl->lanes[i]->stats();
  return result;
}

void Engine::resetStats() {
  for (auto &lane : impl->lanes)
    if (lane) lane->resetStats();
}

const std::vector<TraceEvent> &Engine::trace() const { return impl->events; }
void Engine::clearTrace() { impl->events.clear(); }
uint64_t Engine::allocatedBytes() const { return impl->allocated; }

} // namespace zero::runtime

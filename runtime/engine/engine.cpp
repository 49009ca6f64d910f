#include "runtime/engine/engine.h"
#include "runtime/base/error.h"
#include "runtime/engine/resolve.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"
#include "runtime/plan/target.h"
#include <algorithm>
#include <numeric>

namespace zero::runtime {
namespace {

constexpr uint64_t kHyperBytes = 16 * sizeof(float); // of a HYPER input

std::string nameOf(const plan::PlanFile &file) { return file.path.empty() ? "the plan" : "'" + file.path + "'"; }

// Refuses, by name, plans that are fine but not for this run or not built yet.
void requireServable(const plan::PlanFile &file, const CommunicatorFactory &factory, Device &device) {
  device.requireTarget(file.plan.target());
  requireWorld(file, factory.world());
  requireCode(file);
  if (file.plan.axes_size() > 1)
    throw Error(nameOf(file) + " spreads its ranks over the axes " + plan::axesText(file.plan) +
                ", and more than one axis is not built yet; compile for data-parallel ranks alone (zeroc --world N)");
  for (const plan::Bucket &bucket : file.plan.buckets())
    for (const plan::StateTensor &tensor : bucket.tensors())
      if (tensor.role() != plan::StateTensor::COMPUTE && tensor.dtype() != plan::F32)
        throw Error(nameOf(file) + " keeps the " + plan::roleName(tensor.role()) + " of bucket '" + bucket.name() + "' in " +
                    plan::DType_Name(tensor.dtype()) + ", which is not built yet; compile it again");
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
  auto forHost = std::ranges::count_if(file.plan.kernels(), [&](const plan::Kernel &kernel) { return plan::isForHost(file.plan, kernel); });
  if ((file.kernels.empty() && file.plan.kernels_size() > forHost) || (file.hostKernels.empty() && forHost > 0))
    throw Error(
        nameOf(file) +
        " has no machine code for its kernels: it can be read, with zero-inspect, but not run; compile the model again with --target cpu");
}

struct Engine::Impl {
  Impl(const plan::PlanFile &file, Device &device, CommunicatorFactory &factory, const EngineOptions &options)
      : file(file), plan(file.plan), device(device), rank(factory.rank()) {
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
    std::unique_ptr<Communicator> everybody = factory.create(); // until all are here, as device.prepare() needs them, too
    everybody->barrier();
    for (const plan::Constant &constant : plan.constants()) writeConstant(constant);
    std::vector<KernelSymbol> kernels, hostKernels;
    for (const plan::Kernel &kernel : plan.kernels())
      (plan::isForHost(plan, kernel) ? hostKernels : kernels)
          .push_back(
              {kernel.symbol(), kernel.extent(), {kernel.arg_bytes().begin(), kernel.arg_bytes().end()}, kernel.row(), kernel.gpu()});
    if (!kernels.empty()) device.loadKernels(file.kernels, kernels);
    if (!hostKernels.empty()) device.loadHostKernels(file.hostKernels, hostKernels, plan.target());
    makeGroups(options.groups, selected);
    std::vector<DeviceProgram> programs(static_cast<size_t>(plan.programs_size()));
    for (uint32_t index : selected)
      programs[index] = resolve(
          plan, plan.programs(static_cast<int>(index)), [this](const plan::Ref &ref) { return address(ref); }, groups,
          static_cast<uint64_t>(rank));
    for (const DeviceProgram &program : programs) prepared.push_back(program.source != nullptr);
    device.prepare(std::move(programs), factory);
    trace = options.trace;
  }

  ~Impl() { device.stop(); }

  void allocateArenas(const std::vector<uint32_t> &selected) {
    for (int i = 0; i < plan.arenas_size(); ++i) {
      const plan::Arena &arena = plan.arenas(i);
      uint64_t bytes = arena.persistent() ? arena.bytes() : 0;
      if (!arena.persistent())
        for (uint32_t index : selected) bytes = std::max<uint64_t>(bytes, plan.programs(static_cast<int>(index)).arena_bytes(i));
      arenas.push_back(device.allocateArena(arena.name(), arena.tier(), bytes));
      (arena.tier() == plan::DISK ? onDisk : allocated) += bytes;
    }
  }

  // A few pages beside the plan's arenas: hyper-parameters of each group, and room for iterations that several groups share.
  void makeGroups(const std::vector<uint32_t> &of, const std::vector<uint32_t> &selected) {
    if (std::all_of(of.begin(), of.end(), [](uint32_t group) { return group == 0; })) return;
    groups.of = of;
    uint64_t count = *std::max_element(of.begin(), of.end()), room = scratchBytes(plan, selected);
    Address at{device.allocateArena("parameter groups", plan::DEVICE, 2 * count * kHyperBytes + kLanes * room), 0};
    for (const plan::Input &input : plan.inputs())
      if (input.role() == plan::Input::HYPER) groups.hyper = {address(input.ref())};
    if (groups.hyper.empty()) throw Error(nameOf(file) + " has no input for hyper-parameters, so no parameter can have others");
    groups.kept = groups.hyper; // until a program has a copy
    for (std::vector<Address> *hyper : {&groups.hyper, &groups.kept})
      for (uint64_t g = 0; g < count; ++g, at = at + kHyperBytes) hyper->push_back(at);
    for (int lane = 0; lane < kLanes; ++lane, at = at + room) groups.scratch.push_back(at);
    bool onHost = std::ranges::any_of(selected, [&](uint32_t index) {
      return std::ranges::any_of(plan.programs(static_cast<int>(index)).steps(),
                                 [](const plan::Step &step) { return step.lane() == plan::UPDATE_HOST; });
    });
    if (!onHost) return;
    at = {device.allocateArena("parameter groups on host", plan::HOST, (count + 1) * kHyperBytes + room), 0};
    for (uint64_t g = 0; g <= count; ++g, at = at + kHyperBytes) groups.onHost.push_back(at); // the first one is the program's own
    groups.scratch[plan::UPDATE_HOST] = at;
  }

  Address address(const plan::Ref &ref) const {
    const plan::Buffer &buffer = plan.buffers(static_cast<int>(ref.buffer()));
    return {arenas[buffer.arena()], buffer.offset() + plan::offsetOf(plan, ref, static_cast<uint64_t>(rank))};
  }

  Address part(const plan::Ref &ref, uint64_t offset, uint64_t bytes) const {
    if (offset > ref.bytes() || bytes > ref.bytes() - offset)
      throw Error("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) + " of a part of buffer '" +
                  plan.buffers(static_cast<int>(ref.buffer())).name() + "' were asked for, which has " + std::to_string(ref.bytes()) +
                  ": this is an error in zerorun");
    return address(ref) + offset;
  }

  void writeConstant(const plan::Constant &constant) {
    const std::byte *values = file.constants.data() + constant.segment_offset();
    device.write(address(constant.ref()), constant.ref().bytes(),
                 [&](uint64_t first, std::span<std::byte> piece) { std::copy_n(values + first, piece.size(), piece.begin()); });
  }

  void submit(Submission submission) {
    if (submission.program >= prepared.size() || !prepared[submission.program])
      throw Error("program " + std::to_string(submission.program) + " was not selected when the engine was made");
    submission.trace = trace;
    device.submit(submission);
  }

  Completion finish() {
    Completion completion = device.finish();
    for (size_t lane = 0; lane < kLanes; ++lane) {
      stats[lane].busySeconds += completion.lanes[lane].busySeconds;
      stats[lane].steps += completion.lanes[lane].steps;
      stats[lane].bytes += completion.lanes[lane].bytes;
    }
    events.insert(events.end(), completion.events.begin(), completion.events.end());
    return completion;
  }

  const plan::PlanFile &file;
  const plan::Plan &plan;
  Device &device;
  int rank;
  std::vector<uint32_t> arenas; // the device's number of each of the plan's
  uint64_t allocated = 0, onDisk = 0;
  ParameterGroups groups;
  std::vector<bool> prepared; // of each program
  bool trace = false;
  std::array<LaneStats, kLanes> stats{};
  std::vector<TraceEvent> events;
};

Engine::Engine(const plan::PlanFile &file, Device &device, CommunicatorFactory &factory, const EngineOptions &options)
    : impl(std::make_unique<Impl>(file, device, factory, options)) {}
Engine::~Engine() = default;

void Engine::read(const plan::Ref &from, uint64_t offset, uint64_t bytes, const TakePiece &take) const {
  impl->device.read(impl->part(from, offset, bytes), bytes, take);
}
void Engine::write(const plan::Ref &to, uint64_t offset, uint64_t bytes, const FillPiece &fill) {
  impl->device.write(impl->part(to, offset, bytes), bytes, fill);
}

HostMemory Engine::hostMemory(uint64_t bytes) { return impl->device.hostMemory(bytes); }
HostTransfer Engine::transfer(const plan::Ref &ref, std::span<std::byte> host) const { return {impl->part(ref, 0, host.size()), host}; }
HostTransfer Engine::hyperTransfer(uint32_t group, std::span<std::byte> host) const {
  if (host.size() > kHyperBytes) throw Error("too many hyper-parameters: this is an error in zerorun");
  return {impl->groups.hyper.at(group), host};
}

void Engine::submit(Submission submission) { impl->submit(submission); }
Completion Engine::finish() { return impl->finish(); }
void Engine::run(uint32_t program, const UpdateHook &beforeUpdate) {
  impl->submit({.program = program, .beforeUpdate = beforeUpdate ? &beforeUpdate : nullptr});
  impl->finish();
}

const std::array<LaneStats, kLanes> &Engine::stats() const { return impl->stats; }
void Engine::resetStats() { impl->stats = {}; }
const std::vector<TraceEvent> &Engine::trace() const { return impl->events; }
void Engine::clearTrace() { impl->events.clear(); }
void Engine::endTrace() { impl->trace = false; }
uint64_t Engine::allocatedBytes() const { return impl->allocated; }
uint64_t Engine::diskBytes() const { return impl->onDisk; }

} // namespace zero::runtime

#include "runtime/device/cuda/cuda_program.h"
#include "runtime/base/error.h"
#include "runtime/device/step_name.h"
#include "runtime/plan/validate.h"
#include <algorithm>

namespace zero::runtime::cuda {
namespace {

// Makes the Calls of any Work, one after another on one lane.
struct Binder {
  const DeviceProgram &program;
  const Operation &operation;
  const Binding &binding;
  CudaProgram &bound;

  using Calls = std::vector<Call>;
  [[noreturn]] void refuse(const std::string &why) const { throw Error(stepName(*program.source, operation.step) + " " + why); }
  Pointer at(const Place &place) const { return place ? binding.pointer(*place) : 0; }

  Calls operator()(const LaunchOp &op) const {
    if (onHost()) return hostLaunch(op);
    const Kernel &kernel = binding.kernels[op.kernel];
    auto iterations = static_cast<uint64_t>(op.extent);
    bool all = iterations == kernel.extent, cut = kernel.extent == kernel.grid.blocks(); // which has a block for each iteration
    if (op.begin != 0 || !(all || cut)) refuse("launches a part of a kernel that cannot be cut; compile the plan again");
    LaunchCall call{&kernel, all ? kernel.grid.blocks() : static_cast<uint32_t>(iterations), bound.params.data() + bound.params.size()};
    for (uint32_t a = 0; a < op.args; ++a) {
      bound.values.push_back(binding.pointer(program.args[op.firstArg + a]));
      bound.params.push_back(&bound.values.back());
    }
    return {call};
  }
  Calls operator()(const MatMulOf<Place> &op) const {
    return {ProductRun{binding.products->prepare({op, at(op.a), at(op.b), at(op.c), at(op.bias), at(op.aux)})}};
  }
  Calls operator()(const AttentionOf<Place> &) const {
    refuse("is attention, which is not built yet for cuda as a step of its own; compile the plan again with a newer zeroc");
  }
  Calls operator()(const AttentionGradOf<Place> &) const {
    refuse("is the gradient of attention, which is not built yet for cuda as a step of its own; compile the plan again with a newer zeroc");
  }
  Calls operator()(const CopyOf<Place> &op) const {
    if (onHost()) return {HostCall{runtime::CopyCall{inHost(*op.dst), inHost(*op.src), op.bytes}, program.source, operation.step}};
    if (auto from = binding.disk.find(*op.src)) return diskCalls(false, *from, *op.dst, op.bytes);
    if (auto to = binding.disk.find(*op.dst)) return diskCalls(true, *to, *op.src, op.bytes);
    return copyOrNothing(at(op.dst), at(op.src), op.bytes);
  }
  Calls operator()(const FillOf<Place> &op) const {
    if (onHost()) return {HostCall{runtime::FillCall{inHost(*op.dst), op.pattern, op.bytes}, program.source, operation.step}};
    return {FillCall{at(op.dst), op.pattern, op.bytes}};
  }
  // Of one rank: a copy, or nothing.
  Calls operator()(const AllGatherOf<Place> &op) const {
    if (binding.world == 1) return copyOrNothing(at(op.dst), at(op.src), op.bytes);
    sends(op.bytes * others());
    return {AllGatherOf<Pointer>{at(op.src), at(op.dst), op.bytes}};
  }
  // In the order of ranks, slice by slice, or in NCCL's, as a whole.
  Calls operator()(const ReduceScatterOf<Place> &op) const {
    Pointer src = at(op.src), dst = at(op.dst), staging = at(op.staging);
    if (binding.world == 1 && op.dtype == plan::F32) return copyOrNothing(dst, src, op.count * sizeof(float));
    uint64_t element = plan::bytesOf(op.dtype), part = op.count * element;
    sends(part * others());
    if (op.slice == 0) return {ReduceScatterOf<Pointer>{src, dst, op.count, 0, 0, op.dtype}};
    Calls calls;
    for (uint64_t first = 0; first < op.count; first += op.slice) {
      uint64_t size = std::min(op.slice, op.count - first);
      if (binding.world > 1) calls.push_back(ExchangeCall{src + first * element, staging, part, size * element});
      calls.push_back(SumCall{staging, src + binding.rank * part + first * element, op.dtype, dst + first * sizeof(float), size,
                              binding.world, binding.rank});
    }
    return calls;
  }
  Calls operator()(const AllReduceOf<Place> &op) const {
    if (binding.world == 1) return {Nothing{}};
    Pointer data = at(op.data), staging = at(op.staging);
    if (op.slice == 0) {
      sends(2 * op.count * sizeof(float) * others() / binding.world);
      return {AllReduceOf<Pointer>{data, op.count, 0, 0}};
    }
    sends(op.count * sizeof(float) * others());
    Calls calls;
    for (uint64_t first = 0; first < op.count; first += op.slice) {
      uint64_t size = std::min(op.slice, op.count - first);
      Pointer own = data + first * sizeof(float);
      calls.push_back(AllGatherOf<Pointer>{own, staging, size * sizeof(float)});
      calls.push_back(SumCall{staging, own, plan::F32, own, size, binding.world, binding.rank});
    }
    return calls;
  }
  Calls operator()(const RowsOf<Place> &) const { refuse("is about rows of a table, which is not built for cuda; compile the plan again"); }

private:
  bool onHost() const { return operation.lane == plan::UPDATE_HOST; }
  std::byte *inHost(Address address) const {
    if (std::byte *memory = binding.hostMemory(address)) return memory;
    refuse("is for the host's processors, and reaches what does not lie in host memory; compile the plan again");
  }
  Calls hostLaunch(const LaunchOp &op) const {
    void *const *args = bound.hostArgs.data() + bound.hostArgs.size();
    for (uint32_t a = 0; a < op.args; ++a) bound.hostArgs.push_back(inHost(program.args[op.firstArg + a]));
    runtime::LaunchCall call{binding.hostKernels[op.kernel - binding.kernels.size()], args, op.extent, op.grain, op.begin};
    return {HostCall{call, program.source, operation.step}};
  }

  static Calls copyOrNothing(Pointer dst, Pointer src, uint64_t bytes) {
    if (dst == src) return {Nothing{}};
    return {CopyCall{dst, src, bytes}};
  }

  uint64_t others() const { return binding.world - 1; }
  void sends(uint64_t bytes) const { bound.moved[static_cast<size_t>(operation.lane)] += bytes; }

  // Disks reach memory of the host only: what lies on the GPU goes through a piece of that, there and back piece by piece.
  Calls diskCalls(bool writes, uint64_t offset, Address memory, uint64_t bytes) const {
    auto transfer = [&](uint64_t from, std::byte *host, uint64_t size) {
      return DiskCall{&binding.disk.storage(), binding.failure, program.source, operation.step, writes, from, host, size};
    };
    if (std::byte *host = binding.hostMemory(memory)) return {transfer(offset, host, bytes)};
    std::byte *bounce = binding.bounce[static_cast<size_t>(operation.lane)];
    Pointer device = binding.pointer(memory), host = pointerTo(bounce);
    Calls calls;
    for (uint64_t first = 0; first < bytes; first += kPieceBytes) {
      uint64_t size = std::min(kPieceBytes, bytes - first);
      if (writes) calls.push_back(CopyCall{host, device + first, size});
      calls.push_back(transfer(offset + first, bounce, size));
      if (!writes) calls.push_back(CopyCall{device + first, host, size});
    }
    return calls;
  }
};

// What each lane has waited for: a wait for no more than that is none.
class Waited {
public:
  // What is left of waits of `lane`: the last tick of each other lane, if it is later than those before.
  std::vector<LaneWait> rest(int lane, std::span<const LaneWait> waits) {
    std::vector<LaneWait> left;
    for (int other = 0; other < kLanes; ++other) {
      int64_t last = -1;
      for (const LaneWait &wait : waits)
        if (wait.lane == other && (wait.tick > 0 || other == plan::COMPUTE)) last = std::max<int64_t>(last, wait.tick);
      int64_t &before = ticks[static_cast<size_t>(lane)][static_cast<size_t>(other)];
      if (other == lane || last <= before) continue;
      before = last;
      left.push_back({other, static_cast<uint32_t>(last)});
    }
    return left;
  }

private:
  std::array<std::array<int64_t, kLanes>, kLanes> ticks = [] {
    std::array<std::array<int64_t, kLanes>, kLanes> none{};
    for (auto &lane : none) lane.fill(-1);
    return none;
  }();
};

std::span<const LaneWait> waitsOf(const DeviceProgram &program, WaitRange range) {
  return std::span(program.waits).subspan(range.begin, range.end - range.begin);
}

} // namespace

void DiskCall::run() const noexcept {
  if (failure->has()) return;
  try {
    if (writes)
      storage->write(offset, {memory, bytes});
    else
      storage->read(offset, {memory, bytes});
  } catch (const std::exception &error) {
    failure->set(std::make_exception_ptr(Error(stepName(*program, step) + ": " + error.what())));
  }
}

std::vector<uint32_t> submissionOrder(const DeviceProgram &program) {
  std::vector<uint32_t> order, left(program.operations.size());
  for (uint32_t i = 0; i < left.size(); ++i) left[i] = i;
  std::array<uint32_t, kLanes> ticks{};
  while (!left.empty()) {
    std::array<bool, kLanes> held{}; // an operation before it on its lane could not go yet
    std::vector<uint32_t> later;
    for (uint32_t number : left) {
      const Operation &operation = program.operations[number];
      bool &holds = held[static_cast<size_t>(operation.lane)];
      auto reached = [&](const LaneWait &wait) { return ticks[static_cast<size_t>(wait.lane)] >= wait.tick; };
      holds = holds || !std::ranges::all_of(waitsOf(program, {operation.waitBegin, operation.waitEnd}), reached);
      if (holds) {
        later.push_back(number);
        continue;
      }
      order.push_back(number);
      ticks[static_cast<size_t>(operation.lane)] += operation.signals;
    }
    if (later.size() == left.size())
      throw Error(stepName(*program.source, program.operations[later.front()].step) + " waits for what never comes");
    left = std::move(later);
  }
  return order;
}

CudaProgram boundProgram(const DeviceProgram &program, const Binding &binding) {
  CudaProgram bound;
  bound.source = program.source;
  if (!program.source) return bound;
  bound.values.reserve(program.args.size()); // params point into it, and launches into these
  bound.params.reserve(program.args.size());
  bound.hostArgs.reserve(program.args.size());
  bound.uses[plan::COMPUTE] = true;
  Waited waited;
  std::vector<uint32_t> firstCall(program.operations.size()); // of each operation
  std::array<bool, kLanes> inStep{};                          // an operation of the lane's step has been seen
  for (uint32_t number : submissionOrder(program)) {
    const Operation &operation = program.operations[number];
    auto lane = static_cast<size_t>(operation.lane);
    bound.uses[lane] = true;
    uint32_t tick = bound.ticks[lane] += operation.signals;
    bool whole = operation.signals && !inStep[lane];
    if (const auto *copy = std::get_if<CopyOf<Place>>(&operation.work); copy && whole) bound.moved[lane] += copy->bytes;
    firstCall[number] = static_cast<uint32_t>(bound.operations.size());
    std::vector<Call> calls = std::visit(Binder{program, operation, binding, bound}, operation.work);
    for (size_t i = 0; i < calls.size(); ++i) {
      bool first = i == 0, last = i + 1 == calls.size();
      bound.operations.push_back({operation.lane,
                                  calls[i],
                                  operation.step,
                                  first && !inStep[lane],
                                  last && operation.signals,
                                  tick,
                                  first ? operation.update : nullptr,
                                  {}});
      if (first) bound.operations.back().waits = waited.rest(operation.lane, waitsOf(program, {operation.waitBegin, operation.waitEnd}));
    }
    inStep[lane] = !operation.signals;
  }
  ++bound.ticks[plan::COMPUTE];
  bound.resultWaits = waited.rest(plan::COMPUTE, waitsOf(program, program.resultWaits));
  for (const Entry &entry : program.entries) {
    Waited before;
    CudaEntry &to = bound.entries.emplace_back();
    to.after = entry.after;
    to.inputWaits = before.rest(plan::COMPUTE, waitsOf(program, entry.inputWaits));
    std::vector<Entry::Joins> joins = entry.waits;
    std::ranges::stable_sort(joins, {}, [&](const Entry::Joins &join) { return firstCall[join.operation]; });
    for (const Entry::Joins &join : joins)
      for (const LaneWait &wait : before.rest(program.operations[join.operation].lane, std::span(&join.wait, 1)))
        to.waits.push_back({firstCall[join.operation], wait});
  }
  return bound;
}

bool communicates(std::span<const DeviceProgram> programs) {
  auto isCollective = [](const Operation &operation) {
    return std::holds_alternative<AllGatherOf<Place>>(operation.work) || std::holds_alternative<ReduceScatterOf<Place>>(operation.work) ||
           std::holds_alternative<AllReduceOf<Place>>(operation.work);
  };
  return std::ranges::any_of(programs, [&](const DeviceProgram &program) { return std::ranges::any_of(program.operations, isCollective); });
}

bool sumsInOrder(std::span<const CudaProgram> programs) {
  auto sums = [](const CudaOperation &operation) { return std::holds_alternative<SumCall>(operation.call); };
  return std::ranges::any_of(programs, [&](const CudaProgram &program) { return std::ranges::any_of(program.operations, sums); });
}

std::array<bool, kLanes> lanesWithProducts(std::span<const DeviceProgram> programs) {
  std::array<bool, kLanes> lanes{};
  for (const DeviceProgram &program : programs)
    for (const Operation &operation : program.operations)
      if (std::holds_alternative<MatMulOf<Place>>(operation.work)) lanes[static_cast<size_t>(operation.lane)] = true;
  return lanes;
}

std::array<bool, kLanes> lanesThatBounce(std::span<const DeviceProgram> programs, const Binding &binding) {
  std::array<bool, kLanes> lanes{};
  for (const DeviceProgram &program : programs)
    for (const Operation &operation : program.operations) {
      const auto *copy = std::get_if<CopyOf<Place>>(&operation.work);
      if (!copy) continue;
      bool bounces = (binding.disk.find(*copy->src) && !binding.hostMemory(*copy->dst)) ||
                     (binding.disk.find(*copy->dst) && !binding.hostMemory(*copy->src));
      lanes[static_cast<size_t>(operation.lane)] |= bounces;
    }
  return lanes;
}

} // namespace zero::runtime::cuda

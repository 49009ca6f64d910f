#include "runtime/device/cpu/cpu_program.h"
#include "runtime/base/error.h"
#include "runtime/device/step_name.h"
#include <algorithm>

namespace zero::runtime {
namespace {

// Makes a Call of any Work: the same with pointers for places.
struct Binder {
  const DeviceProgram &program;
  const Operation &operation;
  std::span<const KernelFunction> kernels;
  const Pointer &pointer;
  const DiskArenas &disk;
  std::vector<void *> &args;

  void *any(const Place &place) const { return place ? pointer(*place) : nullptr; }
  float *floats(const Place &place) const { return static_cast<float *>(any(place)); }

  Call operator()(const LaunchOp &op) const {
    void *const *first = args.data() + args.size();
    for (uint32_t a = 0; a < op.args; ++a) args.push_back(pointer(program.args[op.firstArg + a]));
    return LaunchCall{kernels[op.kernel], first, op.extent, op.grain, op.begin};
  }
  Call operator()(const MatMulOf<Place> &op) const {
    return MatMulCall{op, any(op.a), any(op.b), any(op.c), nullptr, nullptr, any(op.group)};
  }
  AttentionCall attention(const AttentionOf<Place> &op) const {
    return {op, any(op.q), any(op.k), any(op.v), any(op.mask), any(op.out), any(op.lse), any(op.bias)};
  }
  Call operator()(const AttentionOf<Place> &op) const { return attention(op); }
  Call operator()(const AttentionGradOf<Place> &op) const {
    return AttentionGradCall{attention(op.forward), any(op.dout), any(op.dq), any(op.dk), any(op.dv), any(op.dbias)};
  }
  Call operator()(const CopyOf<Place> &op) const {
    auto memory = [&](const Place &place) { return static_cast<std::byte *>(any(place)); };
    if (auto from = disk.find(*op.src)) return DiskCall{&disk.storage(), false, *from, memory(op.dst), op.bytes};
    if (auto to = disk.find(*op.dst)) return DiskCall{&disk.storage(), true, *to, memory(op.src), op.bytes};
    return CopyCall{any(op.dst), any(op.src), op.bytes};
  }
  Call operator()(const FillOf<Place> &op) const { return FillCall{any(op.dst), op.pattern, op.bytes}; }
  Call operator()(const AllGatherOf<Place> &op) const { return AllGatherCall{any(op.src), any(op.dst), op.bytes}; }
  Call operator()(const ReduceScatterOf<Place> &op) const {
    requireOrder(op.slice);
    return ReduceScatterCall{any(op.src), any(op.dst), op.count, any(op.staging), op.slice, op.dtype};
  }
  Call operator()(const AllReduceOf<Place> &op) const {
    requireOrder(op.slice);
    return AllReduceCall{floats(op.data), op.count, floats(op.staging), op.slice};
  }
  Call operator()(const RowsOf<Place> &op) const {
    if (auto to = disk.find(*op.window))
      return DiskRowsCall{&disk.rowWriter(), op, any(op.indices), static_cast<std::byte *>(any(op.rows)), *to};
    return RowsCall{op, op.does, any(op.indices), any(op.rows), any(op.window)};
  }
  // Any order would keep the promise of a library's, but for the room that such a sum does not bring.
  void requireOrder(uint64_t slice) const {
    if (slice == 0)
      throw Error(stepName(*program.source, operation.step) +
                  " sums in the order of a GPU's library, and CPUs sum in that of ranks, which takes room; compile with --target cpu");
  }
};

} // namespace

bool CpuProgram::communicates(int lane) const {
  const auto &list = lanes[static_cast<size_t>(lane)];
  return std::any_of(list.begin(), list.end(), [](const CpuOperation &operation) {
    return std::holds_alternative<AllGatherCall>(operation.call) || std::holds_alternative<ReduceScatterCall>(operation.call) ||
           std::holds_alternative<AllReduceCall>(operation.call);
  });
}

Call boundCall(const DeviceProgram &program, const Operation &operation, std::span<const KernelFunction> kernels, const Pointer &pointer,
               const DiskArenas &disk, std::vector<void *> &args) {
  return std::visit(Binder{program, operation, kernels, pointer, disk, args}, operation.work);
}

CpuProgram boundProgram(const DeviceProgram &program, std::span<const KernelFunction> kernels, const Pointer &pointer,
                        const DiskArenas &disk) {
  CpuProgram bound;
  bound.source = program.source;
  bound.waits = program.waits;
  bound.args.reserve(program.args.size()); // calls point into it
  bound.resultWaits = program.resultWaits;
  std::vector<uint32_t> inLane; // the place of each operation in its lane
  for (const Operation &operation : program.operations) {
    auto lane = static_cast<size_t>(operation.lane);
    inLane.push_back(static_cast<uint32_t>(bound.lanes[lane].size()));
    bound.steps[lane] += operation.signals;
    bool whole = operation.signals && (bound.lanes[lane].empty() || bound.lanes[lane].back().signals);
    if (const auto *copy = std::get_if<CopyOf<Place>>(&operation.work); copy && whole) bound.copied[lane] += copy->bytes;
    if (const auto *rows = std::get_if<RowsOf<Place>>(&operation.work); rows && whole) bound.copied[lane] += rows->count * rows->rowBytes;
    bound.lanes[lane].push_back({boundCall(program, operation, kernels, pointer, disk, bound.args), operation.step, operation.waitBegin,
                                 operation.waitEnd, operation.signals, operation.update});
  }
  for (const Entry &entry : program.entries) {
    CpuEntry &to = bound.entries.emplace_back(CpuEntry{entry.after, entry.inputWaits, {}});
    for (const Entry::Joins &wait : entry.waits)
      to.waits[static_cast<size_t>(program.operations[wait.operation].lane)].push_back({inLane[wait.operation], wait.wait});
  }
  return bound;
}

std::set<uint32_t> copiedWithDisk(std::span<const DeviceProgram> programs, const DiskArenas &disk) {
  std::set<uint32_t> arenas;
  for (const DeviceProgram &program : programs)
    for (const Operation &operation : program.operations)
      if (const auto *copy = std::get_if<CopyOf<Place>>(&operation.work)) {
        if (disk.find(*copy->src)) arenas.insert(copy->dst->arena);
        if (disk.find(*copy->dst)) arenas.insert(copy->src->arena);
      }
  return arenas;
}

RowLimits rowsToDisk(std::span<const DeviceProgram> programs, const DiskArenas &disk) {
  RowLimits limits;
  for (const DeviceProgram &program : programs)
    for (const Operation &operation : program.operations)
      if (const auto *rows = std::get_if<RowsOf<Place>>(&operation.work); rows && disk.find(*rows->window))
        limits = {std::max(limits.count, rows->count), std::max(limits.rowBytes, rows->rowBytes)};
  return limits;
}

Needs needsOf(std::span<const DeviceProgram> programs) {
  Needs needs;
  AttentionLimits &limits = needs.attention;
  for (const DeviceProgram &program : programs)
    for (const Operation &operation : program.operations) {
      if (const auto *product = std::get_if<MatMulOf<Place>>(&operation.work); product && product->dtype != plan::F32)
        needs.halfProducts.push_back(*product);
      const AttentionShape *shape = std::get_if<AttentionOf<Place>>(&operation.work);
      if (const auto *grad = std::get_if<AttentionGradOf<Place>>(&operation.work)) shape = &grad->forward;
      if (!shape) continue;
      limits.dim = std::max(limits.dim, shape->dim);
      limits.qLen = std::max(limits.qLen, shape->qLen);
      limits.kvLen = std::max(limits.kvLen, shape->kvLen);
      limits.half = limits.half || shape->dtype != plan::F32;
    }
  return needs;
}

} // namespace zero::runtime

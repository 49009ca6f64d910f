#include "runtime/simulate/step_cost.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/state.h"
#include <algorithm>
#include <optional>

namespace zero::simulate {
namespace {

/// Seconds for a byte of a copy between tiers; none: it is computation's. Between a disk and a GPU it goes through the host's memory, piece
/// by piece, and the lane does both one after the other.
std::optional<double> secondsOfByte(const plan::Plan &plan, const plan::Step &step, const Machine &machine) {
  plan::Tier from = tierOf(plan, step.reads(0)), to = tierOf(plan, step.writes(0));
  if (from == to) return std::nullopt;
  double seconds = 0;
  if (from == plan::DISK) seconds += 1 / machine.diskRead;
  if (to == plan::DISK) seconds += 1 / machine.diskWrite;
  if (bool direct = seconds > 0 && plan.target().kind() != plan::Target::CUDA; !direct) {
    if (from == plan::DEVICE) seconds += 1 / machine.toHost;
    if (to == plan::DEVICE) seconds += 1 / machine.toDevice;
  }
  return seconds;
}

/// Rows are read and written in the blocks that hold them, by a request each way.
double secondsOfRows(const plan::Plan &plan, const plan::Step &step, const Machine &machine, double bytes) {
  switch (tierOf(plan, step.writes(0))) {
  case plan::DISK: {
    auto rows = double(plan::expectedRows(step));
    return std::max(bytes / 2 * (1 / machine.diskRead + 1 / machine.diskWrite), rows * 2 * machine.diskRequest);
  }
  case plan::HOST:
    return bytes / 2 / machine.toHost;
  default:
    return bytes / machine.memory;
  }
}

/// NCCL gathers and adds around a ring, or as fast; ranks of a CPU, and sums in the order of ranks, send each other rank its part
/// (runtime/comm/collectives.cpp, runtime/device/cuda/collectives.cpp), in slices one after another. A plan for nothing that exists is
/// taken for a ring's, one call for each.
double secondsOf(const plan::Plan &plan, const plan::Collective &collective, uint64_t sent, const Machine &machine) {
  bool sumsInOrder = collective.kind() != plan::Collective::ALL_GATHER && collective.order() != plan::Collective::LIBRARY;
  plan::Target::Kind target = plan.target().kind();
  bool exchanges = target == plan::Target::CPU || (target == plan::Target::CUDA && sumsInOrder);
  if (!exchanges) return double(sent) / machine.link + machine.linkLatency;
  return double(sent) / std::min(machine.link, machine.exchange) +
         machine.linkLatency * double(std::max<uint64_t>(inspect::slicesOf(collective), 1));
}

} // namespace

plan::Tier tierOf(const plan::Plan &plan, const plan::Ref &ref) { return plan.arenas(int(plan.buffers(int(ref.buffer())).arena())).tier(); }

Resource resourceOf(const plan::Plan &plan, const plan::Step &step) {
  if (!step.has_copy() && !step.has_write_rows()) return simulate::resourceOf(step.lane());
  plan::Tier from = tierOf(plan, step.reads(0)), to = tierOf(plan, step.writes(0));
  if (from == to) return kProcessors;
  return from == plan::DISK || to == plan::DISK ? kDisk : to == plan::DEVICE ? kToDevice : kToHost;
}

double secondsOf(const plan::Plan &plan, const plan::Step &step, const Machine &machine) {
  inspect::Work work = inspect::workOf(plan, step);
  double touched = double(work.touched) / (step.lane() == plan::UPDATE_HOST ? machine.hostMemory : machine.memory);
  auto products = [&](plan::DType type, bool tf32 = false) {
    double rate = tf32 ? machine.productsTf32 : type == plan::F32 ? machine.productsF32 : machine.productsBf16;
    return std::max(touched, double(work.flops) / 2 / rate);
  };
  double seconds = touched;
  if (step.has_matmul()) seconds = products(step.matmul().dtype(), step.matmul().tf32());
  if (step.has_attention()) seconds = products(step.attention().dtype());
  if (step.has_attention_grad()) seconds = products(step.attention_grad().dtype());
  if (step.has_copy())
    if (auto each = secondsOfByte(plan, step, machine))
      seconds = double(work.touched) / 2 * *each; // read on one side, written on the other
  if (step.has_write_rows()) seconds = secondsOfRows(plan, step, machine, double(work.touched));
  if (step.has_collective() && plan::groupSize(plan, step.collective().axes()) > 1)
    seconds = secondsOf(plan, step.collective(), work.sent, machine);
  return seconds + machine.step;
}

} // namespace zero::simulate

//===- work.cpp - what a step computes, touches and sends ----------------------------------------------===//
#include "runtime/files/file.h"
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include "runtime/plan/attention.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"

namespace zero::inspect {
namespace {

/// Bytes a rank sends: each rank's shard travels to the N - 1 others, or one shard for each of the others leaves. An all_reduce
/// of scalars sends everything to everybody, but by a library, which goes round a ring twice.
uint64_t sentBy(const plan::Plan &plan, const plan::Collective &c) {
  uint64_t bytes = c.count() * plan::bytesOf(c.dtype()), ranks = plan::groupSize(plan, c.axes());
  bool ring = c.kind() == plan::Collective::ALL_REDUCE && c.order() == plan::Collective::LIBRARY;
  return ring ? 2 * bytes * (ranks - 1) / ranks : bytes * (ranks - 1);
}

/// Of a disk all blocks of a row are read and written, each row's apart from the others'.
uint64_t bytesOfRows(const plan::Plan &plan, const plan::Step &step) {
  uint64_t each = step.write_rows().row_bytes();
  bool onDisk = plan.arenas(int(plan.buffers(int(step.writes(0).buffer())).arena())).tier() == plan::DISK;
  return 2 * plan::expectedRows(step) *
         (onDisk ? (each + runtime::kBlockBytes - 1) / runtime::kBlockBytes * runtime::kBlockBytes + runtime::kBlockBytes : each);
}

/// Of products in groups, those whose matrices are elsewhere: as many as there are other groups, if they are alike.
void leaveOut(Work &work, const plan::Step &step) {
  const plan::MatMul &product = step.matmul();
  double part = double(product.groups()) / double(product.all_groups());
  uint64_t matrices = product.grouped() == plan::MatMul::GROUPED_B ? step.reads(1).bytes() : step.writes(0).bytes();
  work.flops = uint64_t(double(work.flops) * part);
  work.touched = matrices + uint64_t(double(work.touched - matrices) * part);
}

} // namespace

Work &Work::operator+=(const Work &other) {
  steps += other.steps, flops += other.flops, touched += other.touched, sent += other.sent;
  return *this;
}

uint64_t slicesOf(const plan::Collective &c) { return c.slice() ? (c.count() + c.slice() - 1) / c.slice() : 0; }

Work workOf(const plan::Plan &plan, const plan::Step &step) {
  Work work;
  work.steps = 1;
  for (const plan::Ref &ref : step.reads()) work.touched += ref.bytes();
  for (const plan::Ref &ref : step.writes()) work.touched += ref.bytes();
  auto kernel = [&](const plan::Launch &launch) {
    work.flops = plan.kernels(int(launch.kernel())).flops();
    work.touched = plan.kernels(int(launch.kernel())).bytes();
  };
  auto attention = [&](const plan::Attention &a, uint64_t products) {
    work.flops = 2 * products * a.batch() * a.heads() * plan::seenPairs(a) * a.dim();
  };
  switch (step.what_case()) {
  case plan::Step::kLaunch:
    kernel(step.launch());
    break;
  case plan::Step::kUpdate:
    kernel(step.update().launch());
    if (step.update().has_apart()) work.touched += 2 * step.reads(plan::kernelReads(step) + 1).bytes();
    break;
  case plan::Step::kUpdateRows:
    kernel(step.update_rows().launch());
    break;
  case plan::Step::kWriteRows:
    work.touched = bytesOfRows(plan, step);
    break;
  case plan::Step::kMatmul:
    work.flops = 2 * step.matmul().batch() * step.matmul().m() * step.matmul().n() * step.matmul().k();
    if (step.matmul().grouped() != plan::MatMul::UNGROUPED) leaveOut(work, step);
    break;
  case plan::Step::kAttention: // two products over the pairs
    attention(step.attention(), 2);
    break;
  case plan::Step::kAttentionGrad: // the scores again, then four products
    attention(step.attention_grad(), 5);
    break;
  case plan::Step::kCollective:
    work.touched = 0;
    work.sent = sentBy(plan, step.collective());
    break;
  default: // only bytes
    break;
  }
  return work;
}

std::array<Work, kLanes> workByLane(const plan::Plan &plan, bool clips) {
  std::array<Work, kLanes> lanes{};
  for (auto [program, times] : programsOfStep(plan, clips))
    for (const plan::Step &step : plan.programs(program).steps()) {
      Work work = workOf(plan, step);
      lanes[step.lane()] += {work.steps * times, work.flops * times, work.touched * times, work.sent * times};
    }
  return lanes;
}

std::vector<Runs> programsOfStep(const plan::Plan &plan, bool clips) {
  std::vector<Runs> runs;
  if (!plan::trains(plan, clips)) clips = !clips; // the plan has the others alone
  auto add = [&](plan::Program::Role role, bool clip, uint64_t times) {
    for (int i = 0; i < plan.programs_size(); ++i)
      if (times && plan.programs(i).role() == role && plan.programs(i).clips() == (clip && !plan.scales_loss())) {
        runs.push_back({i, times});
        return;
      }
  };
  if (plan::stepsInOneProgram(plan)) {
    add(plan::Program::STEP, clips, 1);
    return runs;
  }
  add(plan::Program::FIRST, false, 1);
  add(plan::Program::MIDDLE, false, plan.accumulate() - 2);
  add(plan::Program::LAST, clips, 1);
  return runs;
}

Traffic trafficOf(const plan::Plan &plan, bool clips) {
  Traffic traffic;
  for (auto [program, times] : programsOfStep(plan, clips))
    for (const plan::Step &step : plan.programs(program).steps()) {
      if (!step.has_collective()) continue;
      Traffic::Kind &kind = traffic.collectives[collectiveName(step.collective().kind())];
      uint64_t bytes = sentBy(plan, step.collective()) * times;
      kind.calls += times;
      kind.slices += slicesOf(step.collective()) * times;
      kind.bytes += bytes;
      traffic.bytes += bytes;
    }
  return traffic;
}

} // namespace zero::inspect

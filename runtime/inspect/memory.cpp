//===- memory.cpp - bytes by kind, and the fullest moment of each program ----------------------------===//
#include "runtime/inspect/inspect.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <algorithm>

namespace zero::inspect {
namespace {

bool liesIn(const plan::Plan &plan, const plan::Buffer &buffer, plan::Tier tier) { return plan.arenas(int(buffer.arena())).tier() == tier; }

ProgramMemory measure(const plan::Plan &plan, int index, plan::Tier tier) {
  const plan::Program &program = plan.programs(index);
  ProgramMemory memory;
  memory.program = program.name();
  for (int a = 0; a < program.arena_bytes_size() && a < plan.arenas_size(); ++a)
    if (plan.arenas(a).tier() == tier) memory.height += program.arena_bytes(a);
  // Difference arrays over the steps: a buffer adds its bytes at `first` and takes them away after `last`.
  size_t steps = program.steps_size();
  std::vector<std::array<int64_t, kKinds>> change(steps + 1);
  for (const plan::Buffer &b : plan.buffers())
    if (b.program() == index && liesIn(plan, b, tier)) {
      change[b.first()][b.kind()] += int64_t(b.bytes());
      change[std::min<size_t>(b.last(), steps - 1) + 1][b.kind()] -= int64_t(b.bytes());
    }
  std::array<int64_t, kKinds> now{};
  for (size_t s = 0; s < steps; ++s) {
    uint64_t sum = 0;
    for (int k = 0; k < kKinds; ++k) {
      now[k] += change[s][k];
      sum += uint64_t(now[k]);
      memory.largest[k] = std::max(memory.largest[k], uint64_t(now[k]));
    }
    memory.inStep.push_back(sum);
    if (sum > memory.live) {
      memory.live = sum;
      memory.peakStep = uint32_t(s);
      std::copy(now.begin(), now.end(), memory.atPeak.begin());
    }
  }
  return memory;
}

} // namespace

Memory memoryOf(const plan::Plan &plan, plan::Tier tier) {
  Memory memory;
  for (const plan::Arena &arena : plan.arenas())
    if (arena.tier() == tier) (arena.persistent() ? memory.state : memory.work) += arena.bytes();
  for (const plan::Buffer &b : plan.buffers())
    if (b.program() < 0 && liesIn(plan, b, tier)) memory.persistent[b.kind()] += b.bytes();
  for (int i = 0; i < plan.programs_size(); ++i) {
    memory.programs.push_back(measure(plan, i, tier));
    if (!plan.programs(i).clips() || !plan::trains(plan, false))
      memory.workUnclipped = std::max(memory.workUnclipped, memory.programs.back().height);
  }
  for (const plan::Bucket &bucket : plan.buckets())
    memory.padding += plan::bytesOf(plan::masterOf(bucket).dtype()) * bucket.padding_elements();
  return memory;
}

std::vector<uint32_t> liveBuffers(const plan::Plan &plan, int program, uint32_t step, plan::Tier tier) {
  std::vector<uint32_t> live;
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const plan::Buffer &b = plan.buffers(i);
    if (b.program() == program && liesIn(plan, b, tier) && b.first() <= step && step <= b.last()) live.push_back(uint32_t(i));
  }
  std::stable_sort(live.begin(), live.end(),
                   [&](uint32_t a, uint32_t b) { return plan.buffers(int(a)).bytes() > plan.buffers(int(b)).bytes(); });
  return live;
}

} // namespace zero::inspect

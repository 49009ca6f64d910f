//===- memory.cpp - bytes by kind, and the fullest moment of each program ----------------------------===//
#include "runtime/inspect/inspect.h"
#include <algorithm>

namespace zero::inspect {
namespace {

ProgramMemory measure(const plan::Plan &plan, int index) {
  const plan::Program &program = plan.programs(index);
  ProgramMemory memory;
  memory.program = program.name();
  for (uint64_t bytes : program.arena_bytes()) memory.height += bytes;
  // Difference arrays over the steps: a buffer adds its bytes at `first` and takes them away behind `last`.
  size_t steps = program.steps_size();
  std::vector<std::array<int64_t, kKinds>> change(steps + 1);
  for (const plan::Buffer &b : plan.buffers())
    if (b.program() == index) {
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
    if (sum > memory.live) {
      memory.live = sum;
      memory.peakStep = uint32_t(s);
      std::copy(now.begin(), now.end(), memory.atPeak.begin());
    }
  }
  return memory;
}

} // namespace

Memory memoryOf(const plan::Plan &plan) {
  Memory memory;
  for (const plan::Arena &arena : plan.arenas()) (arena.persistent() ? memory.state : memory.work) += arena.bytes();
  for (const plan::Buffer &b : plan.buffers())
    if (b.program() < 0) memory.persistent[b.kind()] += b.bytes();
  for (int i = 0; i < plan.programs_size(); ++i) memory.programs.push_back(measure(plan, i));
  for (const plan::Bucket &bucket : plan.buckets()) memory.padding += 4 * bucket.padding_elements();
  return memory;
}

} // namespace zero::inspect

#include "runtime/train/runs.h"
#include "runtime/plan/micro_steps.h"
#include <algorithm>
#include <cstring>

namespace zero::runtime {

Runs::Runs(Engine &engine, const plan::Plan &plan, size_t groups) : engine(engine), plan(plan) {
  uint64_t losses = plan::kMaxLosses;
  for (const plan::Program &program : plan.programs())
    losses = std::max(losses, plan::microStepsOf(plan, program) * static_cast<uint64_t>(std::max(1, plan.losses_size())));
  for (uint32_t i = 0; i < kSubmissions; ++i) slots.push_back(makeSlot(groups, losses));
  for (int i = 0; i < plan.inputs_size(); ++i)
    if (plan.inputs(i).role() == plan::Input::HYPER) hyperInput = i;
}

Runs::Slot Runs::makeSlot(size_t groups, size_t losses) const {
  uint64_t hyper = Inputs::bytesOf(plan), results = hyper + groups * sizeof(std::array<float, 16>);
  HostMemory memory = engine.hostMemory(results + (losses + 1) * sizeof(float));
  auto *loss = reinterpret_cast<float *>(&memory[static_cast<ptrdiff_t>(results)]);
  Slot slot{memory,
            Inputs(plan, {memory.get(), hyper}),
            {reinterpret_cast<std::array<float, 16> *>(&memory[static_cast<ptrdiff_t>(hyper)]), groups},
            {loss, losses},
            {loss + losses, 1},
            {},
            {}};
  for (int i = 0; i < plan.inputs_size(); ++i) slot.writes.push_back(engine.transfer(plan.inputs(i).ref(), slot.inputs.of(i)));
  for (size_t g = 1; g < groups; ++g)
    slot.writes.push_back(engine.hyperTransfer(static_cast<uint32_t>(g), std::as_writable_bytes(std::span(slot.hyper[g]))));
  slot.reads.reserve(2);
  return slot;
}

void Runs::setHyper(size_t group, const std::array<float, 16> &values) {
  slots[submitted % kSubmissions].hyper[group] = values;
  if (group == 0 && hyperInput >= 0) std::memcpy(inputs().of(hyperInput).data(), values.data(), sizeof values);
}

void Runs::submit(uint32_t program, const UpdateHook *beforeUpdate) {
  Slot &slot = slots[submitted % kSubmissions];
  const plan::Program &source = plan.programs(static_cast<int>(program));
  slot.reads.clear(), slot.squaredNorm[0] = 0;
  std::ranges::fill(slot.losses, 0.0f);
  auto read = [&](const plan::Ref &ref, std::span<float> values) {
    if (ref.bytes() > 0) slot.reads.push_back(engine.transfer(ref, std::as_writable_bytes(values).first(ref.bytes())));
  };
  read(source.loss(), slot.losses), read(source.gradient_norm(), slot.squaredNorm);
  engine.submit({.program = program, .writes = slot.writes, .reads = slot.reads, .beforeUpdate = beforeUpdate});
  ++submitted;
}

Runs::Result Runs::finish() {
  const Slot &slot = slots[finished++ % kSubmissions];
  Completion completion = engine.finish();
  Result result{{}, slot.squaredNorm[0], std::move(completion)};
  auto terms = static_cast<size_t>(std::max(1, plan.losses_size()));
  for (size_t i = 0; i < slot.losses.size(); ++i) result.losses[i % terms] += slot.losses[i]; // in the order of micro-steps
  return result;
}

void Runs::abandon() noexcept {
  while (any()) try {
      finish();
    } catch (...) { // whoever abandons them has a failure of its own to report
    }
}

} // namespace zero::runtime

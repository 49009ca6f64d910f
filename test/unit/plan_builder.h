// Makes small plans by hand for tests: one persistent and one transient arena, buffers placed one after another.
#pragma once
#include "runtime/plan/container.h"
#include <string>

namespace zero::test {

class PlanBuilder {
public:
  explicit PlanBuilder(uint32_t world = 1) {
    plan.set_world(world);
    plan.set_accumulate(1);
    plan.set_samples(1);
    for (bool persistent : {true, false}) {
      plan::Arena *arena = plan.add_arenas();
      arena->set_name(persistent ? "state" : "work");
      arena->set_persistent(persistent);
    }
    plan::Program *program = plan.add_programs();
    program->set_name("step");
    program->add_arena_bytes(0);
    program->add_arena_bytes(0);
  }

  // A buffer of f32 elements; the Ref covers it all.
  plan::Ref floats(const std::string &name, uint64_t count, bool persistent = true) { return bytes(name, count * 4, persistent); }

  plan::Ref bytes(const std::string &name, uint64_t bytes, bool persistent = true) {
    plan::Buffer *buffer = plan.add_buffers();
    buffer->set_name(name);
    buffer->set_arena(persistent ? 0 : 1);
    buffer->set_bytes(bytes);
    buffer->set_kind(persistent ? plan::PARAMETER : plan::ACTIVATION);
    buffer->set_program(persistent ? -1 : 0);
    plan::Arena *arena = plan.mutable_arenas(persistent ? 0 : 1);
    buffer->set_offset(arena->bytes());
    arena->set_bytes((arena->bytes() + bytes + 63) / 64 * 64);
    if (!persistent) program().set_arena_bytes(1, arena->bytes());
    plan::Ref ref;
    ref.set_buffer(static_cast<uint32_t>(plan.buffers_size() - 1));
    ref.set_bytes(bytes);
    return ref;
  }

  plan::Step &step(const std::string &name, plan::Lane lane = plan::COMPUTE) {
    plan::Step *step = program().add_steps();
    step->set_name(name);
    step->set_lane(lane);
    return *step;
  }

  void fill(const std::string &name, const plan::Ref &ref, float value, plan::Lane lane = plan::COMPUTE) {
    plan::Fill *fill = step(name, lane).mutable_fill();
    *fill->mutable_dst() = ref;
    uint32_t pattern;
    static_assert(sizeof(pattern) == sizeof(value));
    __builtin_memcpy(&pattern, &value, sizeof(pattern));
    fill->set_pattern(pattern);
  }

  plan::Program &program() { return *plan.mutable_programs(0); }

  plan::PlanFile file() const { return {plan, {}, {}, "", nullptr}; }

  plan::Plan plan;
};

inline void waitFor(plan::Step &step, plan::Lane lane, uint64_t tick) {
  plan::Wait *wait = step.add_waits();
  wait->set_lane(lane);
  wait->set_tick(tick);
}

// Part of a Ref: `bytes` from `offset`, shifted by `stride` for every rank.
inline plan::Ref part(plan::Ref ref, uint64_t offset, uint64_t bytes, uint64_t stride = 0) {
  ref.set_offset(ref.offset() + offset);
  ref.set_bytes(bytes);
  ref.set_rank_stride(stride);
  return ref;
}

} // namespace zero::test

// Makes small plans by hand for tests: one persistent and one transient arena, others as needed, buffers placed one after another.
#pragma once
#include "runtime/plan/container.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <string>
#include <vector>

namespace zero::test {

class PlanBuilder {
public:
  explicit PlanBuilder(uint32_t world = 1) {
    plan.set_world(world);
    plan.add_axes()->set_name("data"), plan.mutable_axes(0)->set_size(world);
    plan.set_accumulate(1);
    plan.set_samples(1);
    for (bool persistent : {true, false}) {
      plan::Arena *arena = plan.add_arenas();
      arena->set_name(persistent ? "state" : "work");
      arena->set_persistent(persistent);
      arena->set_alignment(64);
    }
    plan::Program *program = plan.add_programs();
    program->set_name("step");
    program->add_arena_bytes(0);
    program->add_arena_bytes(0);
  }

  // A buffer of f32 elements; the Ref covers it all.
  plan::Ref floats(const std::string &name, uint64_t count, bool persistent = true) { return bytes(name, count * 4, persistent); }

  plan::Ref bytes(const std::string &name, uint64_t bytes, bool persistent = true) { return bytesIn(persistent ? 0 : 1, name, bytes); }

  // What the host fills before the program: the hyper-parameters, and anything else by its name.
  plan::Ref hyperInput() { return filled(floats("hyper", 16), plan::Input::HYPER, plan::F32); }
  plan::Ref filled(const plan::Ref &ref, plan::Input::Role role, plan::DType type) {
    plan::Input *input = plan.add_inputs();
    input->set_name(plan.buffers(static_cast<int>(ref.buffer())).name()), input->set_role(role), input->set_dtype(type);
    input->add_shape(static_cast<int64_t>(ref.bytes() / plan::bytesOf(type)));
    *input->mutable_ref() = ref;
    return ref;
  }

  // Another persistent arena; bytesIn() takes its number.
  int addArena(plan::Tier tier, uint32_t alignment) {
    plan::Arena *arena = plan.add_arenas();
    arena->set_name(plan::Tier_Name(tier)), arena->set_tier(tier), arena->set_persistent(true), arena->set_alignment(alignment);
    for (plan::Program &program : *plan.mutable_programs()) program.add_arena_bytes(0);
    return plan.arenas_size() - 1;
  }

  plan::Ref bytesIn(int number, const std::string &name, uint64_t bytes) {
    plan::Buffer *buffer = plan.add_buffers();
    plan::Arena *arena = plan.mutable_arenas(number);
    bool persistent = arena->persistent();
    buffer->set_name(name);
    buffer->set_arena(static_cast<uint32_t>(number));
    buffer->set_bytes(bytes);
    buffer->set_kind(persistent ? plan::PARAMETER : plan::ACTIVATION);
    buffer->set_program(persistent ? -1 : 0);
    buffer->set_offset(arena->bytes());
    arena->set_bytes((arena->bytes() + bytes + arena->alignment() - 1) / arena->alignment() * arena->alignment());
    if (!persistent) program().set_arena_bytes(number, arena->bytes());
    plan::Ref ref;
    ref.set_buffer(static_cast<uint32_t>(plan.buffers_size() - 1));
    ref.set_bytes(bytes);
    return ref;
  }

  plan::Step &step(const std::string &name, const std::vector<plan::Ref> &reads, const std::vector<plan::Ref> &writes,
                   plan::Lane lane = plan::COMPUTE) {
    plan::Step *step = program().add_steps();
    step->set_name(name);
    step->set_lane(lane);
    step->mutable_reads()->Add(reads.begin(), reads.end());
    step->mutable_writes()->Add(writes.begin(), writes.end());
    return *step;
  }

  // What a sum over ranks writes: beside the result the room for what others send, if there are others.
  std::vector<plan::Ref> staged(const plan::Ref &result, const plan::Ref &staging) const {
    return plan.world() > 1 ? std::vector{result, staging} : std::vector{result};
  }

  void fill(const std::string &name, const plan::Ref &ref, float value, plan::Lane lane = plan::COMPUTE) {
    uint32_t pattern;
    static_assert(sizeof(pattern) == sizeof(value));
    __builtin_memcpy(&pattern, &value, sizeof(pattern));
    step(name, {}, {ref}, lane).mutable_fill()->set_pattern(pattern);
  }

  // Kernels reach as far as their launches have them.
  void boundKernels() {
    for (const plan::Program &program : plan.programs())
      for (const plan::Step &step : program.steps()) {
        const plan::Launch *launch = plan::launchOf(step);
        if (!launch) continue;
        plan::Kernel *kernel = plan.mutable_kernels(static_cast<int>(launch->kernel()));
        int reads = plan::kernelReads(step), writes = plan::kernelWrites(step);
        kernel->set_args(static_cast<uint32_t>(reads + writes));
        kernel->set_extent(launch->extent());
        if (step.has_update()) kernel->set_row(step.update().row());
        kernel->clear_arg_bytes();
        for (int i = 0; i < reads; ++i) kernel->add_arg_bytes(step.reads(i).bytes());
        for (int i = 0; i < writes; ++i) kernel->add_arg_bytes(step.writes(i).bytes());
      }
  }

  plan::Program &program() { return *plan.mutable_programs(0); }

  plan::PlanFile file() const { return {plan, {}, {}, "", nullptr}; }

  plan::Plan plan;
};

inline plan::StateTensor &addTensor(plan::Bucket &bucket, plan::StateTensor::Role role, const plan::Ref &ref, plan::Part part,
                                    plan::DType dtype = plan::F32) {
  plan::StateTensor *tensor = bucket.add_tensors();
  tensor->set_role(role), tensor->set_dtype(dtype), tensor->set_part(part);
  *tensor->mutable_ref() = ref;
  return *tensor;
}

// Elements from `offset` on of the bucket are the parameter's indices [begin, begin + size); all of them without these.
inline plan::Piece &addPiece(plan::Parameter &parameter, uint32_t bucket, uint64_t offset, const std::vector<uint64_t> &begin = {},
                             const std::vector<uint64_t> &size = {}) {
  plan::Piece *piece = parameter.add_pieces();
  piece->set_bucket(bucket), piece->set_offset_elements(offset);
  piece->mutable_begin()->Add(begin.begin(), begin.end()), piece->mutable_size()->Add(size.begin(), size.end());
  return *piece;
}

inline void waitFor(plan::Step &step, plan::Lane lane, uint64_t tick) {
  plan::Wait *wait = step.add_waits();
  wait->set_lane(lane);
  wait->set_tick(tick);
}

// The constants in which a shared object says how far the plan's kernels reach, in C.
inline std::string boundsInC(const plan::Plan &plan) {
  std::string text;
  for (const plan::Kernel &kernel : plan.kernels()) {
    text += "const unsigned long " + kernel.symbol() + "_bounds[] __asm__(\"" + kernel.symbol() + ".bounds\") = {" +
            std::to_string(kernel.extent()) + ", " + std::to_string(kernel.args());
    for (uint64_t bytes : kernel.arg_bytes()) text += ", " + std::to_string(bytes);
    text += ", " + std::to_string(kernel.row()) + "};\n";
  }
  return text;
}

inline plan::Collective &collect(plan::Step &step, plan::Collective::Kind kind, uint64_t count, plan::DType dtype = plan::F32) {
  plan::Collective *collective = step.mutable_collective();
  collective->set_kind(kind), collective->set_count(count), collective->set_dtype(dtype);
  if (kind != plan::Collective::ALL_GATHER) collective->set_order(plan::Collective::RANK), collective->set_slice(count);
  return *collective;
}

// Part of a Ref: `bytes` from `offset`, shifted by `stride` for every rank.
inline plan::Ref part(plan::Ref ref, uint64_t offset, uint64_t bytes, uint64_t stride = 0) {
  ref.set_offset(ref.offset() + offset);
  ref.set_bytes(bytes);
  ref.clear_strides();
  if (stride) ref.add_strides(stride);
  return ref;
}

} // namespace zero::test

#include "runtime/base/error.h"
#include "runtime/plan/checks.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

namespace zero::plan {

constexpr uint64_t kMinAlignment = 64, kMaxAlignment = kDiskBlock; // arenas themselves start at multiples of the latter

void checkArenas(const Plan &plan) {
  for (int i = 0; i < plan.arenas_size(); ++i) {
    const Arena &arena = plan.arenas(i);
    std::string what = "arena " + std::to_string(i);
    requireText(what, arena.name());
    what += " '" + arena.name() + "'";
    if (!Tier_IsValid(arena.tier())) throw Error(what + " has the unknown tier " + std::to_string(arena.tier()));
    if (arena.bytes() > kMaxBytes)
      throw Error(what + " has " + std::to_string(arena.bytes()) + " bytes, more than any machine can address");
    uint64_t least = arena.tier() == DISK ? kMaxAlignment : kMinAlignment;
    if (!std::has_single_bit(arena.alignment()) || arena.alignment() < least || arena.alignment() > kMaxAlignment)
      throw Error(what + " aligns buffers to " + std::to_string(arena.alignment()) + " bytes; expected a power of two from " +
                  std::to_string(least) + " to " + std::to_string(kMaxAlignment));
  }
}

namespace {

// What a transient buffer says of the bucket it works for; of persistent ones the buckets say it.
void checkContent(const Plan &plan, const Buffer &buffer, const std::string &what) {
  bool holds = buffer.part() != PART_UNSPECIFIED;
  if (!Part_IsValid(buffer.part())) throw Error(what + " holds the unknown part " + std::to_string(buffer.part()) + " of a bucket");
  if (!buffer.has_bucket()) {
    if (holds || buffer.dtype() != DTYPE_UNSPECIFIED) throw Error(what + " holds a part of a bucket without saying which bucket");
    return;
  }
  if (buffer.program() == -1) throw Error(what + " is persistent and names a bucket; the bucket's tensors say what it holds");
  if (buffer.bucket() >= static_cast<uint32_t>(plan.buckets_size()))
    throw Error(what + " works for bucket " + std::to_string(buffer.bucket()) + ", but the plan has " +
                std::to_string(plan.buckets_size()));
  if (!holds) return;
  const Bucket &bucket = plan.buckets(static_cast<int>(buffer.bucket()));
  uint64_t part = elementsOf(bucket, buffer.part()), size = bytesOf(buffer.dtype());
  if (buffer.begin_elements() >= part)
    throw Error(what + " begins with element " + std::to_string(buffer.begin_elements()) + " of a part of bucket '" + bucket.name() +
                "' that has " + std::to_string(part));
  uint64_t bytes = multiply(part - buffer.begin_elements(), size, what);
  if (buffer.kind() == FETCHED && buffer.bytes() < bytes && buffer.bytes() % size == 0) return; // some of them
  if (plan.arenas(static_cast<int>(buffer.arena())).alignment() == kDiskBlock && buffer.bytes() > bytes)
    bytes = (bytes + kDiskBlock - 1) / kDiskBlock * kDiskBlock; // whole blocks, for copies from and to disk
  requireBytes(buffer.bytes(), bytes, what);
}

void checkBuffers(const Plan &plan) {
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const Buffer &buffer = plan.buffers(i);
    std::string what = "buffer " + std::to_string(i);
    requireText(what, buffer.name());
    what += " '" + buffer.name() + "'";
    if (buffer.arena() >= static_cast<uint32_t>(plan.arenas_size()))
      throw Error(what + " names arena " + std::to_string(buffer.arena()) + ", but the plan has " + std::to_string(plan.arenas_size()));
    if (!BufferKind_IsValid(buffer.kind())) throw Error(what + " has the unknown kind " + std::to_string(buffer.kind()));
    const Arena &arena = plan.arenas(static_cast<int>(buffer.arena()));
    if (buffer.offset() % arena.alignment() != 0)
      throw Error(what + " starts at byte " + std::to_string(buffer.offset()) + " of arena '" + arena.name() +
                  "', which is not a multiple of " + std::to_string(arena.alignment()));
    uint64_t limit = arena.bytes();
    std::string whose = "arena '" + arena.name() + "'";
    checkContent(plan, buffer, what);
    if (buffer.program() == -1) {
      if (!arena.persistent()) throw Error(what + " is persistent but lies in the transient " + whose);
    } else {
      if (buffer.program() < 0 || buffer.program() >= plan.programs_size())
        throw Error(what + " belongs to program " + std::to_string(buffer.program()) + ", but the plan has " +
                    std::to_string(plan.programs_size()));
      if (arena.persistent()) throw Error(what + " belongs to a program but lies in the persistent " + whose);
      const Program &program = plan.programs(buffer.program());
      limit = program.arena_bytes(static_cast<int>(buffer.arena()));
      whose += " of program '" + program.name() + "'";
      if (buffer.first() > buffer.last() || buffer.last() >= static_cast<uint32_t>(program.steps_size()))
        throw Error(what + " lives in steps [" + std::to_string(buffer.first()) + ", " + std::to_string(buffer.last()) + "] of program '" +
                    program.name() + "', which has " + std::to_string(program.steps_size()) + " steps");
    }
    if (buffer.offset() > limit || buffer.bytes() > limit - buffer.offset())
      throw Error(what + " ends at byte " + std::to_string(buffer.offset()) + " + " + std::to_string(buffer.bytes()) + ", outside the " +
                  std::to_string(limit) + " bytes of " + whose);
  }
}

void checkInputs(const Plan &plan) {
  for (const Input &input : plan.inputs()) {
    requireName("an input", input.name());
    std::string what = "input '" + input.name() + "'";
    if (!Input::Role_IsValid(input.role())) throw Error(what + " has the unknown role " + std::to_string(input.role()));
    checkRef(plan, input.ref(), what, kPersistent);
    requireDevice(plan, input.ref(), what);
    uint64_t bytes = bytesOfShape(input.shape(), bytesOf(input.dtype()), what);
    requireBytes(input.ref().bytes(), bytes, what);
    bool fits = true;
    if (input.role() == Input::LOSS_SCALE)
      fits = input.dtype() == F32 && bytes == 4 * static_cast<uint64_t>(plan.losses_size());
    else if (input.role() == Input::HYPER)
      fits = input.dtype() == F32 && bytes == 64;
    else if (input.role() == Input::SEED)
      fits = input.dtype() == I64 && bytes == 16;
    else if (input.role() != Input::SHARED)
      fits = input.shape_size() > 0 && static_cast<uint64_t>(input.shape(0)) == plan.samples();
    if (!fits) throw Error(what + " does not have the type and shape its role asks for");
    if (input.limit() < 0) throw Error(what + " has the negative index limit " + std::to_string(input.limit()));
    if (input.classes() < 0) throw Error(what + " has the negative number of classes " + std::to_string(input.classes()));
  }
}

// Where one program holds all micro-steps, each has its samples and its seed, as the first has them.
void checkMicroSteps(const Plan &plan) {
  if (!plan.vertical()) {
    for (const Input &input : plan.inputs())
      if (input.micro_step())
        throw Error("input '" + input.name() + "' is of micro-step " + std::to_string(input.micro_step()) +
                    ", but the plan's programs hold one each");
    return;
  }
  for (const Program &program : plan.programs())
    if (program.role() != Program::STEP && program.role() != Program::EVAL)
      throw Error("program '" + program.name() +
                  "' holds one of several micro-steps, but the plan's order of them is vertical: one program "
                  "has them all");
  std::map<std::pair<uint32_t, std::string>, const Input *> first; // by role and name
  std::map<const Input *, std::set<uint32_t>> others;              // micro-steps beside the first
  auto differs = [](const Input &input) {
    return input.role() == Input::DATA || input.role() == Input::LABELS || input.role() == Input::SEED;
  };
  for (const Input &input : plan.inputs())
    if (differs(input) && input.micro_step() == 0) first[{input.role(), input.name()}] = &input;
  for (const Input &input : plan.inputs()) {
    if (input.micro_step() == 0) continue;
    std::string what = "input '" + input.name() + "' of micro-step " + std::to_string(input.micro_step());
    auto found = first.find({input.role(), input.name()});
    if (input.micro_step() >= plan.accumulate() || found == first.end())
      throw Error(what + (found == first.end() ? " has no like in the first micro-step"
                                               : ": the plan has " + std::to_string(plan.accumulate()) + " micro-steps"));
    const Input &like = *found->second;
    if (!std::equal(input.shape().begin(), input.shape().end(), like.shape().begin(), like.shape().end()) ||
        input.dtype() != like.dtype() || input.limit() != like.limit() || input.classes() != like.classes() ||
        input.has_ignored() != like.has_ignored() || input.ignored() != like.ignored())
      throw Error(what + " has another type or shape than that of the first");
    if (!others[&like].insert(input.micro_step()).second) throw Error(what + " occurs twice");
  }
  for (const auto &[key, input] : first)
    if (others[input].size() + 1 != plan.accumulate())
      throw Error("input '" + input->name() + "' is there for " + std::to_string(others[input].size() + 1) + " of " +
                  std::to_string(plan.accumulate()) + " micro-steps");
}

void checkLosses(const Plan &plan) {
  if (plan.losses_size() > kMaxLosses)
    throw Error("the plan has " + std::to_string(plan.losses_size()) + " losses; expected at most " + std::to_string(kMaxLosses));
  for (int i = 0; i < plan.losses_size(); ++i) {
    const Loss &loss = plan.losses(i);
    std::string what = "loss " + std::to_string(i);
    if (!LossKind_IsValid(loss.kind())) throw Error(what + " is of the unknown kind " + std::to_string(loss.kind()));
    requireText(what, loss.output());
    requireText(what, loss.labels());
    if (loss.has_weight() && !std::isfinite(loss.weight())) throw Error(what + " has a weight that is not finite");
    bool found = loss.kind() == OUTPUT;
    for (const Input &input : plan.inputs()) found |= input.role() == Input::LABELS && input.name() == loss.labels();
    if (!found) throw Error(what + " reads the labels '" + loss.labels() + "', which no input of the plan holds");
  }
}

void checkConstants(const Plan &plan, uint64_t constantBytes) {
  for (int i = 0; i < plan.constants_size(); ++i) {
    const Constant &constant = plan.constants(i);
    std::string what = "constant " + std::to_string(i);
    checkRef(plan, constant.ref(), what, kPersistent);
    if (constant.segment_offset() > constantBytes || constant.ref().bytes() > constantBytes - constant.segment_offset())
      throw Error(what + " takes bytes " + std::to_string(constant.segment_offset()) + " + " + std::to_string(constant.ref().bytes()) +
                  " of a constant segment of " + std::to_string(constantBytes) + " bytes");
  }
}

} // namespace

void checkMemory(const Plan &plan, uint64_t constantBytes) {
  checkBuffers(plan);
  checkInputs(plan);
  checkMicroSteps(plan);
  checkLosses(plan);
  checkConstants(plan, constantBytes);
}

} // namespace zero::plan

// Checks a plan's message as if nobody knew who made it: after validate() returned, every index, size, offset, enum value and wait
// in the plan may be used without another check. Throws zero::Error with a sentence that names the step, buffer or field.
//
// What it proves: every Ref lies inside its buffer on every rank; every buffer lies inside its arena (persistent) or its
// program's height of it (transient); the extents of every product, attention, collective and copy fit the bytes of their
// Refs; every launch has the extent and the bytes its kernel was made for; waits point at steps that exist and cannot form a cycle;
// texts have a sane length and no control characters. With kernels that do what the message says of them (plan.proto: Kernel; the loader of
// kernels compares) nothing a plan does leaves its buffers, whatever numbers it computes with. What it does not prove: that the machine
// code is what zeroc made. A plan is a program: who runs it trusts who made it (docs/security.md). Nor that buffers alive at once do not
// overlap and that conflicting accesses are ordered. That is the judge of the compiler (`zero-inspect --check`), because a race gives wrong
// numbers inside the plan's own buffers.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>

namespace zero::plan {

inline constexpr int kMaxLosses = 16;

// `constantBytes` is the size of the segment of constants.
void validate(const Plan &plan, uint64_t constantBytes);

// Size of one element; throws for DTYPE_UNSPECIFIED and values unknown to this format.
uint64_t bytesOf(DType dtype);

} // namespace zero::plan

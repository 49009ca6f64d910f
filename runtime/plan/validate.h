// Treats a plan as hostile input: after validate() returned, every index, size, offset, enum value and wait in the
// plan may be used without another check. Throws zero::Error with a sentence that names the step, buffer or field.
//
// What it proves: every Ref lies inside its buffer on every rank; every buffer lies inside its arena (persistent) or its
// program's height of it (transient); the extents of every product, attention and collective fit the bytes of their
// Refs; kernel arguments match; waits point at steps that exist and cannot form a cycle; texts have a sane length.
// What it does not prove: that buffers alive at once do not overlap and that conflicting accesses are ordered. That is
// the judge of the compiler (`zero-inspect --check`), because a race gives wrong numbers but no access out of bounds.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>

namespace zero::plan {

// `kernelBytes` and `constantBytes` are the sizes of the two other segments of the file.
void validate(const Plan &plan, uint64_t kernelBytes, uint64_t constantBytes);

// Size of one element; throws for DTYPE_UNSPECIFIED and values unknown to this format.
uint64_t bytesOf(DType dtype);

} // namespace zero::plan

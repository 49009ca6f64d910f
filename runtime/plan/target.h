//===- target.h - what a plan runs on -----------------------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"

namespace zero::plan {

// How sentences and flags call a kind of target.
inline const char *targetName(Target::Kind kind) { return kind == Target::CPU ? "cpu" : kind == Target::CUDA ? "cuda" : "sim"; }

// Whether the kernel is code for the host's processors in a plan whose other kernels are not.
inline bool isForHost(const Plan &plan, const Kernel &kernel) { return plan.target().kind() == Target::CUDA && !kernel.has_gpu(); }

} // namespace zero::plan

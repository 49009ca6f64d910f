//===- target.h - what a plan runs on -----------------------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"

namespace zero::plan {

// How sentences and flags call a kind of target.
inline const char *targetName(Target::Kind kind) { return kind == Target::CPU ? "cpu" : kind == Target::CUDA ? "cuda" : "sim"; }

} // namespace zero::plan

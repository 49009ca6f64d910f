//===- alignments.h - where the arguments of a plan's kernels begin ---------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include <vector>

namespace zero::pipeline {

/// By kernel and argument, in bytes: what the address is a multiple of in every launch, on every rank; 16 at most, which is what a thread
/// of a GPU loads at once.
std::vector<std::vector<unsigned>> argumentAlignments(const plan::Plan &plan);

} // namespace zero::pipeline

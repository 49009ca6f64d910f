//===- need.h - the memory that one rank needs, by tier -----------------------------------------------===//
#pragma once
#include "compiler/plan/Plan.h"
#include "passes/place/offsets.h"
#include <array>

namespace zero::place {

/// Bytes of one rank, by tier.
struct Need {
  std::array<uint64_t, 3> state{}, work{}; // persistent arenas; transient ones of the largest program
  uint64_t of(state::Tier tier) const { return state[size_t(tier)] + work[size_t(tier)]; }
};

/// Of a module whose buffers have live ranges. As long as they have no offsets, transient arenas count with the largest sum of live bytes:
/// placement adds 2 % at most.
Need needOf(mlir::ModuleOp module);

/// A program's buffers in a tier: the problem, and what its entries are.
struct TierBuffers {
  OffsetProblem problem;
  mlir::SmallVector<planir::BufferOp> buffers;
};
/// Fails, with an error, at a buffer without a live range.
mlir::FailureOr<TierBuffers> buffersOf(planir::ProgramOp program, state::Tier tier);

/// Bytes that copies between tiers move in one optimizer step: all its micro-steps, the last of them clipped (which needs most memory).
uint64_t bytesCopied(mlir::ModuleOp module);

} // namespace zero::place

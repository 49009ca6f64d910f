//===- assign_offsets.cpp - plan-assign-offsets -----------------------------------------------------===//
#include "passes/place/Passes.h"
#include "passes/place/arenas.h"
#include "passes/place/need.h"

#define DEBUG_TYPE "plan-assign-offsets"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
#define GEN_PASS_DEF_ASSIGNOFFSETSPASS
#include "passes/place/Passes.h.inc"

namespace {

struct AssignOffsets : impl::AssignOffsetsPassBase<AssignOffsets> {
  void runOnOperation() override {
    std::array<Bytes, kTiers> ends; // of the persistent arena of each tier
    for (auto state : getOperation().getOps<StateOp>()) {
      Bytes &end = ends[size_t(tierOf(state))];
      state.setOffset(end.count);
      end += Bytes(state.getBytes()).alignedTo(Bytes(alignmentOf(tierOf(state))));
    }
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SmallVector<int64_t> away;
      for (auto tier : {state::Tier::device, state::Tier::host, state::Tier::disk}) {
        auto placed = place(program, tier);
        if (failed(placed)) return signalPassFailure();
        auto [height, live] = *placed;
        if (tier == state::Tier::device) {
          program.setHeight(height);
          program.setLive(live);
          if (live) perMille.updateMax((height - live) * 1000 / live);
        } else {
          away.append({height, live});
        }
      }
      if (llvm::any_of(away, [](int64_t bytes) { return bytes > 0; })) program.setAway(away);
    }
  }

  /// Yields the height, and the largest sum of live bytes.
  FailureOr<std::pair<int64_t, int64_t>> place(ProgramOp program, state::Tier tier) {
    auto found = buffersOf(program, tier);
    if (failed(found)) return failure();
    OffsetSolution solution = solveOffsets(found->problem);
    for (auto [buffer, offset] : llvm::zip(found->buffers, solution.offsets)) buffer.setOffset(offset.count);
    return std::pair(solution.height.count, largestLive(found->problem, Bytes(1)).count);
  }
};

} // namespace
} // namespace zero::place

//===- assign_offsets.cpp - plan-assign-offsets -----------------------------------------------------===//
#include "passes/place/Passes.h"
#include "passes/place/arenas.h"
#include "passes/place/offsets.h"

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
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(place(program))) return signalPassFailure();
  }

  LogicalResult place(ProgramOp program) {
    OffsetProblem problem;
    problem.alignment = Bytes(workAlignmentOf(getOperation()));
    SmallVector<BufferOp> buffers(program.getBody().front().getOps<BufferOp>());
    for (BufferOp buffer : buffers) {
      if (!buffer.getFirst()) return buffer.emitError() << "has no life; run plan-mark-lifetimes first";
      problem.buffers.push_back(
          {buffer.getName().str(), Bytes(buffer.getBytes()), int64_t(*buffer.getFirst()), int64_t(*buffer.getLast())});
    }
    OffsetSolution solution = solveOffsets(problem);
    for (auto [buffer, offset] : llvm::zip(buffers, solution.offsets)) buffer.setOffset(offset.count);
    Bytes live = largestLive(problem, Bytes(1));
    program.setHeight(solution.height.count);
    program.setLive(live.count);
    if (live.count) perMille.updateMax((solution.height.count - live.count) * 1000 / live.count);
    return success();
  }
};

} // namespace
} // namespace zero::place

//===- verify.cpp - plan-verify ---------------------------------------------------------------------===//
#include "compiler/zero/Zero.h"
#include "passes/place/Passes.h"
#include "passes/place/arenas.h"
#include "passes/place/offsets.h"

#define DEBUG_TYPE "plan-verify"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
#define GEN_PASS_DEF_VERIFYPASS
#include "passes/place/Passes.h.inc"

namespace {

struct Verify : impl::VerifyPassBase<Verify> {
  void runOnOperation() override {
    Arenas arenas(getOperation());
    workAlignment = workAlignmentOf(getOperation());
    bool right = succeeded(checkStates());
    for (auto program : getOperation().getOps<ProgramOp>())
      right &= succeeded(checkRefs(program, arenas)) && succeeded(checkBuffers(program)) && succeeded(checkOrder(program, arenas));
    if (!right) signalPassFailure();
  }

  int64_t workAlignment = 0;

  LogicalResult checkStates() {
    SmallVector<StateOp> states(getOperation().getOps<StateOp>());
    for (StateOp state : states) {
      if (!state.getOffset()) return state.emitError() << "has no offset; run plan-assign-offsets first";
      if (int64_t alignment = alignmentOf(tierOf(state)); *state.getOffset() % alignment)
        return state.emitError() << "lies at byte " << *state.getOffset() << ", which is not a multiple of " << alignment;
    }
    auto place = [](StateOp state) { return std::pair(tierOf(state), *state.getOffset()); };
    llvm::stable_sort(states, [&](StateOp a, StateOp b) { return place(a) < place(b); });
    for (size_t i = 1; i < states.size(); ++i)
      if (tierOf(states[i - 1]) == tierOf(states[i]) && *states[i - 1].getOffset() + states[i - 1].getBytes() > *states[i].getOffset())
        return states[i].emitError() << "shares bytes with @" << states[i - 1].getSymName();
    return success();
  }

  LogicalResult checkRefs(ProgramOp program, Arenas &arenas) {
    int64_t world = state::worldOf(program);
    llvm::DenseMap<Value, int64_t> sizes;
    for (StepOp step : stepsOf(program))
      for (auto [i, access] : llvm::enumerate(accessesOf(step))) {
        int64_t &size = sizes.try_emplace(access.ref.buffer, -1).first->second;
        if (size < 0) {
          auto home = arenas.homeOf(access.ref.buffer);
          if (!home) return failure();
          size = home->bytes;
        }
        if (access.ref.end(world) > size)
          return step->emitOpError() << "reference " << i << " ends at byte " << access.ref.end(world) << " of a buffer of " << size;
      }
    return success();
  }

  LogicalResult checkBuffers(ProgramOp program) {
    for (auto tier : {state::Tier::device, state::Tier::host, state::Tier::disk}) {
      OffsetProblem problem;
      OffsetSolution solution;
      bool device = tier == state::Tier::device;
      problem.alignment = Bytes(workAlignment);
      auto away = program.getAway();
      solution.height = Bytes(device ? int64_t(program.getHeight().value_or(0)) : away ? (*away)[tier == state::Tier::host ? 0 : 2] : 0);
      for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
        if (buffer.getTier() != tier) continue;
        if (!buffer.getFirst()) return buffer.emitError() << "has no life; run plan-mark-lifetimes first";
        problem.buffers.push_back(
            {buffer.getName().str(), Bytes(buffer.getBytes()), int64_t(*buffer.getFirst()), int64_t(*buffer.getLast())});
        solution.offsets.push_back(Bytes(*buffer.getOffset()));
      }
      std::string error = checkOffsets(problem, solution);
      if (!error.empty()) return program.emitError() << "@" << program.getSymName() << ": " << error;
    }
    for (auto [position, step] : llvm::enumerate(stepsOf(program)))
      for (Value value : step.getBuffers())
        if (auto buffer = value.getDefiningOp<BufferOp>(); buffer && (position < *buffer.getFirst() || position > *buffer.getLast()))
          return step->emitOpError() << "is step " << position << " and touches buffer '" << buffer.getName()
                                     << "', which is live in steps " << *buffer.getFirst() << " to " << *buffer.getLast();
    return success();
  }

  /// Sorts all accesses by their first byte and compares each with those that reach into it, if their lanes differ.
  LogicalResult checkOrder(ProgramOp program, Arenas &arenas) {
    auto steps = arenas.stepsOf(program);
    if (failed(steps)) return failure();
    SmallVector<StepOp> ops = stepsOf(program);
    std::vector<std::vector<LaneWait>> waits(steps->size());
    for (auto [i, op] : llvm::enumerate(ops))
      if (DenseI64ArrayAttr pairs = op.getWaitsAttr())
        for (int64_t p = 0; p + 1 < pairs.size(); p += 2) waits[i].push_back({int(pairs[p]), pairs[p + 1]});
    std::vector<Clock> clocks = clocksOf(*steps, waits);
    if (clocks.size() != steps->size())
      return program.emitError() << "@" << program.getSymName() << ": a step waits for a step that comes after it, or that does not exist";

    struct Touch {
      int64_t begin, end;
      size_t step;
      int arena;
      bool writes;
    };
    std::vector<Touch> touches;
    std::vector<int64_t> ticks;
    std::array<int64_t, kLanes> count{};
    for (auto [i, step] : llvm::enumerate(*steps)) {
      ticks.push_back(++count[step.lane]);
      for (const MemoryAccess &access : step.accesses) touches.push_back({access.begin, access.end, i, access.arena, access.writes});
    }
    llvm::stable_sort(touches, [](const Touch &a, const Touch &b) { return std::tie(a.arena, a.begin) < std::tie(b.arena, b.begin); });
    std::array<std::vector<Touch>, kLanes> open; // by lane, those that may reach further
    for (const Touch &touch : touches) {
      int lane = (*steps)[touch.step].lane;
      for (int other = 0; other < kLanes; ++other) {
        llvm::erase_if(open[other], [&](const Touch &o) { return o.arena != touch.arena || o.end <= touch.begin; });
        if (other == lane) continue;
        for (const Touch &o : open[other]) {
          if (!touch.writes && !o.writes) continue;
          size_t early = std::min(o.step, touch.step), late = std::max(o.step, touch.step);
          if (clocks[late][(*steps)[early].lane] < ticks[early])
            return ops[late]->emitOpError() << "is step " << late << " and may start before step " << early << " ('"
                                            << nameOf(ops[early]->getLoc()) << "') is complete, but both touch byte " << touch.begin
                                            << " of arena " << arenaName(Arena(touch.arena)) << "; it lacks a wait";
        }
      }
      open[lane].push_back(touch);
    }
    return success();
  }
};

} // namespace
} // namespace zero::place

//===- insert_waits.cpp - plan-insert-waits ---------------------------------------------------------===//
#include "passes/place/Passes.h"
#include "passes/place/arenas.h"
#include "passes/place/past.h"

#define DEBUG_TYPE "plan-insert-waits"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
#define GEN_PASS_DEF_INSERTWAITSPASS
#include "passes/place/Passes.h.inc"

namespace {

/// A program with what the host does before and after it.
struct ProgramSteps {
  ProgramOp op;
  std::vector<LaneStep> steps;
  std::vector<std::vector<LaneWait>> waits;
  Past past;
};

/// A run submits `next` right after `before`, without looking at the state between them.
bool follows(ProgramOp next, ProgramOp before, bool hasMiddle) {
  switch (next.getRole()) {
  case ProgramRole::step:
  case ProgramRole::eval:
    return next == before;
  case ProgramRole::first:
    return before.getRole() == ProgramRole::last;
  case ProgramRole::middle:
    return before.getRole() == ProgramRole::first || before.getRole() == ProgramRole::middle;
  case ProgramRole::last:
    return before.getRole() == (hasMiddle ? ProgramRole::middle : ProgramRole::first);
  }
  llvm_unreachable("a role that is none");
}

struct InsertWaits : impl::InsertWaitsPassBase<InsertWaits> {
  void runOnOperation() override {
    Arenas arenas(getOperation());
    std::vector<ProgramSteps> programs;
    for (auto program : getOperation().getOps<ProgramOp>()) {
      auto steps = arenas.withHost(program);
      if (failed(steps)) return signalPassFailure();
      ProgramSteps &added = programs.emplace_back(ProgramSteps{program, std::move(*steps), {}, {}});
      added.waits = findWaits(added.steps, added.past);
      write(added);
    }
    bool hasMiddle = llvm::any_of(programs, [](ProgramSteps &program) { return program.op.getRole() == ProgramRole::middle; });
    for (ProgramSteps &next : programs) {
      for (auto stale : llvm::make_early_inc_range(next.op.getBody().front().getOps<EntryOp>())) stale.erase();
      for (const ProgramSteps &before : programs)
        if (follows(next.op, before.op, hasMiddle)) enter(next, before);
    }
  }

  /// Plans do not count what the host does in front of a program: that is tick 0 of compute.
  static int64_t tickOf(const LaneWait &wait) { return wait.lane == int(Lane::compute) ? wait.tick - 1 : wait.tick; }

  DenseI64ArrayAttr pairs(const std::vector<LaneWait> &needed) {
    SmallVector<int64_t> pairs;
    for (const LaneWait &wait : needed) pairs.append({wait.lane, tickOf(wait)});
    return DenseI64ArrayAttr::get(&getContext(), pairs);
  }

  void write(const ProgramSteps &program) {
    for (auto [i, step] : llvm::enumerate(stepsOf(program.op))) {
      step.setWaitsAttr(pairs(program.waits[i + 1]));
      waits += program.waits[i + 1].size();
    }
    if (!program.waits.back().empty())
      cast<ReturnOp>(ProgramOp(program.op).getBody().front().getTerminator()).setWaitsAttr(pairs(program.waits.back()));
  }

  void enter(ProgramSteps &next, const ProgramSteps &before) {
    auto needed = findEntryWaits(before.past, next.steps, next.waits);
    SmallVector<int64_t> triples;
    for (size_t i = 1; i + 1 < needed.size(); ++i)
      for (const LaneWait &wait : needed[i]) triples.append({int64_t(i) - 1, wait.lane, tickOf(wait)});
    // Reading the results comes after compute's own last step, and what else wrote them has waited for the reading before.
    OpBuilder b(&getContext());
    b.setInsertionPointToStart(&next.op.getBody().front());
    b.create<EntryOp>(next.op.getLoc(), FlatSymbolRefAttr::get(ProgramOp(before.op).getSymNameAttr()),
                      needed.front().empty() ? nullptr : pairs(needed.front()), b.getDenseI64ArrayAttr(triples));
    entryWaits += needed.front().size() + triples.size() / 3;
  }
};

} // namespace
} // namespace zero::place

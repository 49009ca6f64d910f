//===- assign_offsets.cpp - plan-assign-offsets -----------------------------------------------------===//
#include "passes/place/Passes.h"
#include "passes/place/arenas.h"
#include "passes/place/need.h"
#include "passes/place/next_run.h"
#include "passes/place/reuse.h"
#include <future>

#define DEBUG_TYPE "plan-assign-offsets"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
#define GEN_PASS_DEF_ASSIGNOFFSETSPASS
#include "passes/place/Passes.h.inc"

namespace {

constexpr int64_t kSlack = 16; // steps; more made no schedule shorter (GPT-2 124M under five budgets, simulated)
/// An arena that is fuller than so many percent of what it may take has no room for slack.
constexpr int64_t kMostBeforeSlack = 99;

/// Of each buffer, whether the first and the last step that touch it copy between tiers or go between ranks.
std::vector<TransferEnds> endsOf(ProgramOp program, ArrayRef<BufferOp> buffers) {
  llvm::DenseMap<Value, TransferEnds> ends;
  for (StepOp step : zero::planir::stepsOf(program))
    for (Value buffer : step.getBuffers()) {
      bool transfers = isa<CopyStep, CollectiveStep>(*step) && step.getLane() != Lane::compute;
      auto [found, isFirst] = ends.try_emplace(buffer, TransferEnds{transfers, transfers});
      if (!isFirst) found->second.ends = transfers;
    }
  std::vector<TransferEnds> found;
  for (BufferOp buffer : buffers) found.push_back(ends.lookup(buffer.getResult()));
  return found;
}

bool transfers(const std::vector<TransferEnds> &ends) {
  return llvm::any_of(ends, [](TransferEnds of) { return of.begins || of.ends; });
}

struct Placed {
  TierBuffers buffers;
  OffsetSolution solution;
  int64_t live() const { return largestLive(buffers.problem, Bytes(1)).count; }
};

/// What decides where the buffers of a program lie, apart from their module: programs are placed side by side.
struct Program {
  ProgramOp op;
  std::array<Placed, kTiers> tiers;
  std::vector<TransferEnds> ends;      // of the buffers on the device
  std::optional<OffsetProblem> beside; // that of the device, with bytes of their own for updates beside the next run
  int64_t steps = 0;
  bool waitsForNorm = false;
};

FailureOr<Program> programOf(ProgramOp op, int64_t writeWork) {
  Program program{op, {}, {}, {}, int64_t(zero::planir::stepsOf(op).size()), waitsForNorm(op)};
  for (auto tier : {state::Tier::device, state::Tier::host, state::Tier::disk}) {
    auto found = buffersOf(op, tier);
    if (failed(found)) return failure();
    program.tiers[size_t(tier)].buffers = std::move(*found);
  }
  const TierBuffers &device = program.tiers[size_t(state::Tier::device)].buffers;
  program.ends = endsOf(op, device.buffers);
  if (!transfers(program.ends)) return program;
  program.beside = device.problem;
  if (!addNextRun(op, device.buffers, writeWork, *program.beside)) program.beside.reset();
  return program;
}

/// With bytes of their own for updates beside the next step, and with time for transfers, where that makes the arena larger than neither
/// what is `allowed` nor 1.02 times what is live. Updates that need not wait for the norm were made late to run beside the next step, so
/// that these get their bytes in any case.
void placeOnDevice(Program &program, int64_t allowed) {
  Placed &placed = program.tiers[size_t(state::Tier::device)];
  if (!transfers(program.ends)) {
    placed.solution = solveOffsets(placed.buffers.problem);
    return;
  }
  Bytes most(std::max(allowed, placed.live() * 51 / 50)), low(allowed);
  std::optional<OffsetSolution> found;
  auto mayFit = [&](const OffsetProblem &problem) { return largestLive(problem, problem.alignment) <= most; };
  if (program.beside && (!program.waitsForNorm || mayFit(*program.beside))) {
    found = solveOffsets(*program.beside, most, low);
    if (found->height <= most || !program.waitsForNorm)
      placed.buffers.problem = std::move(*program.beside);
    else
      found.reset();
  }
  if (!found) found = solveOffsets(placed.buffers.problem, Bytes(INT64_MAX), low);
  if (found->height.count <= most.count / 100 * kMostBeforeSlack) {
    OffsetSolution roomy = solveOffsets(withSlack(placed.buffers.problem, program.ends, program.steps, kSlack), most, low);
    if (roomy.height <= most) found = std::move(roomy);
  }
  placed.solution = std::move(*found);
  restBytes(placed.buffers.problem, program.ends, program.steps, std::max(placed.solution.height, Bytes(allowed)), placed.solution);
}

void place(Program &program, int64_t allowed) {
  placeOnDevice(program, allowed);
  for (auto tier : {state::Tier::host, state::Tier::disk}) {
    Placed &placed = program.tiers[size_t(tier)];
    placed.solution = solveOffsets(placed.buffers.problem);
  }
}

struct AssignOffsets : impl::AssignOffsetsPassBase<AssignOffsets> {
  using AssignOffsetsPassBase::AssignOffsetsPassBase;

  void runOnOperation() override {
    std::array<Bytes, kTiers> ends; // of the persistent arena of each tier
    for (auto state : getOperation().getOps<StateOp>()) {
      Bytes &end = ends[size_t(tierOf(state))];
      state.setOffset(end.count);
      end += Bytes(state.getBytes()).alignedTo(Bytes(alignmentOf(tierOf(state))));
    }
    int64_t allowed = deviceBytes - ends[size_t(state::Tier::device)].count; // below 0 without a budget
    std::vector<Program> programs;
    for (auto op : getOperation().getOps<ProgramOp>()) {
      auto program = programOf(op, writeWork);
      if (failed(program)) return signalPassFailure();
      programs.push_back(std::move(*program));
    }
    std::vector<std::future<void>> others;
    for (Program &program : llvm::drop_begin(programs)) others.push_back(std::async([&] { place(program, allowed); }));
    if (!programs.empty()) place(programs.front(), allowed);
    for (std::future<void> &other : others) other.get();
    for (Program &program : programs) write(program.op, program.tiers);
  }

private:
  void write(ProgramOp program, std::array<Placed, kTiers> &tiers) {
    SmallVector<int64_t> away;
    for (auto [tier, placed] : llvm::enumerate(tiers)) {
      for (auto [buffer, offset] : llvm::zip(placed.buffers.buffers, placed.solution.offsets)) buffer.setOffset(offset.count);
      int64_t height = placed.solution.height.count, live = placed.live();
      if (state::Tier(tier) != state::Tier::device) {
        away.append({height, live});
        continue;
      }
      program.setHeight(height);
      program.setLive(live);
      if (live) perMille.updateMax((height - live) * 1000 / live);
    }
    if (llvm::any_of(away, [](int64_t bytes) { return bytes > 0; })) program.setAway(away);
  }
};

} // namespace
} // namespace zero::place

//===- arenas.cpp - the steps of a placed program as plain data -------------------------------------===//
#include "passes/place/arenas.h"
#include "compiler/zero/Zero.h"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {

static_assert(kLanes == getMaxEnumValForLane() + 1);

const char *arenaName(Arena arena) {
  static constexpr const char *names[] = {"state", "state on host", "state on disk", "work", "work on host", "work on disk"};
  return names[arena];
}

Arenas::Arenas(ModuleOp module) : world(state::worldOf(module)) {
  for (auto state : module.getOps<StateOp>()) states[state.getSymNameAttr()] = state;
}

std::optional<Arenas::Home> Arenas::homeOf(Value value) {
  auto placed = [](auto op, Arena arena) -> std::optional<Home> {
    if (!op.getOffset()) {
      op.emitError() << "has no offset; run plan-assign-offsets first";
      return std::nullopt;
    }
    return Home{arena, int64_t(*op.getOffset()), int64_t(op.getBytes())};
  };
  if (auto buffer = value.getDefiningOp<BufferOp>()) return placed(buffer, Arena(Work + int(buffer.getTier())));
  StateOp state = states.lookup(value.getDefiningOp<UseOp>().getStateAttr().getAttr());
  return placed(state, Arena(tierOf(state)));
}

FailureOr<std::vector<LaneStep>> Arenas::stepsOf(ProgramOp program) {
  llvm::DenseMap<Value, Home> homes;
  std::vector<LaneStep> steps;
  for (Operation &op : program.getBody().front()) {
    if (isa<BufferOp, UseOp>(op)) {
      auto home = homeOf(op.getResult(0));
      if (!home) return failure();
      homes[op.getResult(0)] = *home;
    } else if (auto step = dyn_cast<StepOp>(op)) {
      LaneStep &plain = steps.emplace_back();
      plain.lane = int(step.getLane());
      for (const Access &access : accessesOf(step)) {
        const Home &home = homes[access.ref.buffer];
        plain.accesses.push_back({home.arena, home.offset + access.ref.offset, home.offset + access.ref.end(world), access.writes});
      }
    }
  }
  return steps;
}

FailureOr<std::vector<LaneStep>> Arenas::withHost(ProgramOp program) {
  auto steps = stepsOf(program);
  if (failed(steps)) return failure();
  LaneStep inputs{int(Lane::compute), {}}, results = inputs;
  for (auto [name, state] : states)
    if (state.getInput())
      inputs.accesses.push_back({DeviceState, int64_t(*state.getOffset()), int64_t(*state.getOffset() + state.getBytes()), true});
  auto end = cast<ReturnOp>(program.getBody().front().getTerminator());
  for (auto [i, buffer] : llvm::enumerate(end.getBuffers())) {
    auto home = homeOf(buffer);
    if (!home) return failure();
    Ref ref{buffer, end.getOffsets()[i], end.getStrides()[i], end.getBytes()[i]};
    results.accesses.push_back({home->arena, home->offset + ref.offset, home->offset + ref.end(world), false});
  }
  steps->insert(steps->begin(), std::move(inputs));
  steps->push_back(std::move(results));
  return steps;
}

} // namespace zero::place

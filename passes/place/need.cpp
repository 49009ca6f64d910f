//===- need.cpp - the memory that one rank needs, by tier ---------------------------------------------===//
#include "passes/place/need.h"
#include "compiler/zero/Zero.h"

using namespace mlir;
using namespace zero::planir;

namespace zero::place {
namespace {

constexpr state::Tier kAllTiers[] = {state::Tier::device, state::Tier::host, state::Tier::disk};

uint64_t workOf(ProgramOp program, state::Tier tier) {
  if (program.getHeight()) {
    if (tier == state::Tier::device) return *program.getHeight();
    auto away = program.getAway(); // height and live bytes of host, then of disk
    return away ? uint64_t((*away)[tier == state::Tier::host ? 0 : 2]) : 0;
  }
  auto found = buffersOf(program, tier);
  return failed(found) ? 0 : uint64_t(largestLive(found->problem, found->problem.alignment).count);
}

} // namespace

FailureOr<TierBuffers> buffersOf(ProgramOp program, state::Tier tier) {
  TierBuffers found;
  auto module = program->getParentOfType<ModuleOp>();
  found.problem.alignment = Bytes(workAlignmentOf(module));
  for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
    if (buffer.getTier() != tier) continue;
    if (!buffer.getFirst()) return buffer.emitError() << "has no live range; run plan-mark-lifetimes first";
    found.buffers.push_back(buffer);
    found.problem.buffers.push_back(
        {buffer.getName().str(), Bytes(buffer.getBytes()), int64_t(*buffer.getFirst()), int64_t(*buffer.getLast())});
  }
  return found;
}

Need needOf(ModuleOp module) {
  Need need;
  for (auto state : module.getOps<StateOp>())
    need.state[size_t(tierOf(state))] += llvm::alignTo(state.getBytes(), alignmentOf(tierOf(state)));
  for (auto program : module.getOps<ProgramOp>())
    for (state::Tier tier : kAllTiers) {
      uint64_t &work = need.work[size_t(tier)];
      work = std::max(work, workOf(program, tier));
    }
  return need;
}

uint64_t bytesCopied(ModuleOp module) {
  auto micro = module->getAttrOfType<IntegerAttr>(state::ZeroDialect::kAccumulate);
  bool alike = llvm::none_of(module.getOps<ProgramOp>(), [](ProgramOp program) { return program.getClips(); }); // all that update
  uint64_t sum = 0, middles = micro && micro.getInt() > 2 ? uint64_t(micro.getInt() - 2) : 0;
  for (auto program : module.getOps<ProgramOp>()) {
    bool updates = program.getRole() == ProgramRole::step || program.getRole() == ProgramRole::last;
    if (program.getRole() == ProgramRole::eval || (updates && !alike && !program.getClips())) continue;
    uint64_t times = program.getRole() == ProgramRole::middle ? middles : 1;
    for (auto copy : program.getBody().front().getOps<CopyStep>())
      if (cast<StepOp>(*copy).getLane() != Lane::compute) sum += times * uint64_t(copy.getBytes().front());
  }
  return sum;
}

} // namespace zero::place

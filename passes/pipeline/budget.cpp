//===- budget.cpp - schedules against a budget --------------------------------------------------------===//
#include "passes/pipeline/budget.h"
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "mlir/Pass/PassManager.h"
#include "passes/place/Passes.h"
#include "passes/place/bytes.h"
#include "runtime/inspect/names.h"

using namespace mlir;

namespace zero::pipeline {
namespace {

FailureOr<Need> tryOut(ModuleOp sharded, const schedule::Options &options) {
  OwningOpRef<ModuleOp> copy = sharded.clone();
  PassManager pm(sharded.getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false); // the real run verifies
  schedule::buildPipeline(pm, options);
  place::buildPipeline(pm);
  if (failed(pm.run(*copy))) return failure();
  return needOf(*copy);
}

int64_t number(ModuleOp module, StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); }

} // namespace

Need needOf(ModuleOp placed) {
  Need need;
  for (auto state : placed.getOps<planir::StateOp>())
    if (planir::tierOf(state) == state::Tier::device)
      need.state =
          std::max<uint64_t>(need.state, llvm::alignTo(*state.getOffset() + state.getBytes(), planir::alignmentOf(state::Tier::device)));
  for (auto program : placed.getOps<planir::ProgramOp>()) need.work = std::max<uint64_t>(need.work, program.getHeight().value_or(0));
  return need;
}

FailureOr<schedule::Options> scheduleFor(ModuleOp sharded, uint64_t budget, const schedule::Options &given) {
  schedule::Options best = given;
  if (number(sharded, state::ZeroDialect::kWorld) == 1) return best; // nothing travels
  bool gathers =
      llvm::any_of(sharded.getOps<state::BucketOp>(), [](state::BucketOp bucket) { return !bucket.isResident(bucket.readRole()); });
  auto usual = tryOut(sharded, best);
  if (failed(usual)) return failure();
  if (usual->total() <= budget) {
    // Room that is left keeps buckets whole between forward and backward. How much more that takes shows only when it is placed: buckets
    // are kept where others have their peak, or where they have not.
    if (!gathers) return best;
    schedule::Options with = best;
    uint64_t room = budget - usual->total();
    for (uint64_t bytes : {room + usual->work, room, room / 2, room / 4}) {
      with.residentBytes = int64_t(std::min<uint64_t>(bytes, INT64_MAX));
      auto need = tryOut(sharded, with);
      if (failed(need)) return failure();
      if (need->total() <= budget) return with;
    }
    return best;
  }
  schedule::Options least = best;
  least.ahead = least.delay = 0;
  auto need = tryOut(sharded, least);
  if (failed(need)) return failure();
  if (need->total() > budget) return least;
  for (int64_t ahead = gathers ? best.ahead : 0; ahead >= 0; --ahead)
    for (int64_t delay : {1, 0}) {
      schedule::Options some = best;
      some.ahead = ahead;
      some.delay = delay;
      need = tryOut(sharded, some);
      if (failed(need)) return failure();
      if (need->total() <= budget) return some;
    }
  return least;
}

std::string describe(const schedule::Options &options) {
  std::string text = "buckets gathered ahead: " + std::to_string(options.ahead) +
                     ", gradients under way while the next is computed: " + std::to_string(options.delay);
  if (options.residentBytes)
    text += ", bytes of gathered buckets kept until they are needed again: at most " + inspect::grouped(uint64_t(options.residentBytes));
  return text;
}

} // namespace zero::pipeline

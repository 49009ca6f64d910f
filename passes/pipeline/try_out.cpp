//===- try_out.cpp - what a choice needs and how long it takes ----------------------------------------===//
#include "passes/pipeline/try_out.h"
#include "compiler/plan/Plan.h"
#include "compiler/plan/export.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/fuse/Passes.h"
#include "passes/pipeline/changes.h"
#include "passes/place/Passes.h"
#include "passes/place/apart.h"

using namespace mlir;

namespace zero::pipeline {
namespace {

Kept keptAs(state::BucketOp bucket, state::TensorAttr tensor) {
  if (!bucket.getTrainable()) return kFrozen;
  return tensor.getRole() == bucket.readRole() ? kTrained : kOptimizer;
}

/// Programs that need less than others as a rule are left to the choice that is placed: evaluation, and updates that do not wait for the
/// norm.
void leaveHeaviest(ModuleOp sharded) {
  bool allWait =
      sharded->hasAttr(state::ZeroDialect::kScalesLoss) ||
      llvm::none_of(sharded.getOps<func::FuncOp>(), [](func::FuncOp program) { return program->hasAttr(state::ZeroDialect::kClips); });
  for (auto program : llvm::make_early_inc_range(sharded.getOps<func::FuncOp>())) {
    auto role = program->getAttrOfType<StringAttr>(state::ZeroDialect::kRole);
    bool updates = role && (role == "step" || role == "last"), waits = allWait || program->hasAttr(state::ZeroDialect::kClips);
    if (role && (role == "eval" || (updates && !waits))) program.erase();
  }
}

/// Bytes of the smallest buffer into which a bucket is gathered.
uint64_t leastGathered(ModuleOp scheduled) {
  uint64_t least = UINT64_MAX;
  for (auto program : scheduled.getOps<planir::ProgramOp>())
    for (auto buffer : program.getBody().front().getOps<planir::BufferOp>())
      if (buffer.getKind() == planir::BufferKind::gathered) least = std::min<uint64_t>(least, buffer.getBytes());
  return least;
}

LogicalResult estimate(ModuleOp scheduled, const simulate::Machine &machine, Trial &trial) {
  PassManager waits(scheduled.getContext(), ModuleOp::getOperationName());
  waits.enableVerifier(false);
  waits.addPass(place::createInsertWaitsPass());
  planir::ExportOptions options;
  options.describe = codegen::describe;
  plan::Plan plan;
  std::vector<char> constants;
  if (failed(waits.run(scheduled)) || failed(planir::exportPlan(scheduled, options, plan, constants))) return failure();
  if (trial.settings.shard.tiers.hostUpdates) plan.mutable_target()->set_kind(plan::Target::CUDA); // memory of the device's own
  trial.time = simulate::timeOf(plan, machine, /*clips=*/true);
  return success();
}

} // namespace

void addSharding(OpPassManager &pm, const Settings &settings) {
  if (settings.keepBytes) fuse::addRematerialization(pm, *settings.keepBytes);
  if (settings.attentionKernels) fuse::addAttentionKernels(pm, settings.warpgroups);
  shard::buildPipeline(pm, settings.shard);
}

FailureOr<TriedOut> tryOut(ModuleOp fused, const Settings &settings, const Question &question, bool places,
                           const std::atomic<bool> *ended) {
  TriedOut tried;
  Trial &trial = tried.trial;
  trial.settings = settings;
  tried.scheduled = fused.clone();
  ModuleOp copy = *tried.scheduled;
  PassManager sharding(fused.getContext(), ModuleOp::getOperationName()), scheduling(fused.getContext(), ModuleOp::getOperationName());
  for (PassManager *pm : {&sharding, &scheduling}) pm->enableVerifier(false); // the real run verifies
  Settings heaviest = settings;
  if (!places && settings.shard.programs.clip == "any") heaviest.shard.programs.clip = "always"; // what leaveHeaviest would leave of both
  addSharding(sharding, heaviest);
  schedule::buildPipeline(scheduling, settings.schedule);
  scheduling.nest<planir::ProgramOp>().addPass(place::createMarkLifetimesPass());
  if (places) {
    place::AssignOffsetsPassOptions offsets;
    offsets.deviceBytes = int64_t(std::min<uint64_t>(*question.budgets.device, INT64_MAX));
    offsets.writeWork = settings.writeWork;
    scheduling.addPass(place::createAssignOffsetsPass(offsets));
  }
  if (failed(sharding.run(copy))) return failure();
  for (auto bucket : copy.getOps<state::BucketOp>())
    for (auto tensor : bucket.getTensors().getAsRange<state::TensorAttr>())
      trial.rests[keptAs(bucket, tensor)][size_t(tensor.getTier())] += uint64_t(bucket.bytesOf(tensor));
  if (auto removals = copy->getAttrOfType<DenseI64ArrayAttr>(state::ZeroDialect::kRemovals))
    for (ArrayRef<int64_t> left = removals; !left.empty(); left = left.drop_front(2)) trial.removals.push_back({left[0], left[1]});
  trial.keptActivations = numberAt(copy, fuse::kRematerialized, 2);
  if (ended && *ended) return failure();
  if (!places) leaveHeaviest(copy);
  if (failed(scheduling.run(copy))) return failure();
  for (auto program : copy.getOps<planir::ProgramOp>()) tried.steps += planir::stepsOf(program).size();
  trial.need = place::needOf(copy);
  trial.copied = place::bytesCopied(copy);
  trial.leastGathered = leastGathered(copy);
  if (places && failed(estimate(copy, question.machine, trial))) return failure();
  return tried;
}

LogicalResult estimateApart(TriedOut &tried, const simulate::Machine &machine) {
  place::placeApart(*tried.scheduled);
  return estimate(*tried.scheduled, machine, tried.trial);
}

} // namespace zero::pipeline

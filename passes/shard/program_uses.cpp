//===- program_uses.cpp - what a program does with buckets ----------------------------------------------===//
#include "passes/shard/program_uses.h"

using namespace mlir;

namespace zero::shard {

Sharding::Sharding(ModuleOp module) {
  auto number = [&](StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); };
  world = number(state::ZeroDialect::kWorld);
  accumulate = number(state::ZeroDialect::kAccumulate);
  scalesLoss = module->hasAttr(state::ZeroDialect::kScalesLoss);
  optimizer =
      module->getAttrOfType<StringAttr>(state::ZeroDialect::kOptimizer) == "sgd" ? train::OptimizerKind::SGD : train::OptimizerKind::AdamW;
  int64_t shards = 0;
  for (auto bucket : module.getOps<state::BucketOp>()) shards += int64_t(bucket.getShard());
  sliceElements = sliceElementsOf(shards);
}

bool isElsewhere(state::BucketOp bucket) {
  return llvm::any_of(bucket.getTensors().getAsRange<state::TensorAttr>(), [](state::TensorAttr tensor) {
    return tensor.getRole() != state::Role::gradient && tensor.getTier() != state::Tier::device;
  });
}

Type computeType(state::BucketOp bucket) {
  state::TensorAttr compute = bucket.tensorOf(state::Role::compute);
  return compute && !compute.getType().isF32() ? compute.getType() : nullptr;
}

Operation *later(Operation *a, Operation *b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }

LogicalResult ProgramUses::find() {
  role = program->getAttrOfType<StringAttr>(state::ZeroDialect::kRole).getValue();
  waitsForNorm = sharding.scalesLoss || program->hasAttr(state::ZeroDialect::kClips);
  updates = role == "step" || role == "last";
  microSteps = size_t(state::ZeroDialect::microStepsOf(program));
  return failure(failed(checkSignature()) || failed(findReads()) || failed(findGradients()));
}

LogicalResult ProgramUses::checkSignature() {
  if (program.getNumResults() != microSteps)
    return program.emitError() << "@" << program.getName() << " returns " << program.getNumResults() << " values, not the loss alone"
                               << (microSteps > 1 ? " of each micro-step; run zero-interleave first" : "");
  unsigned last = program.getNumArguments() - 1;
  auto hyper = program.getNumArguments() ? program.getArgAttrOfType<StringAttr>(last, nn::NnDialect::kRoleAttr) : StringAttr();
  if (updates && (!hyper || hyper.getValue() != "hyper"))
    return program.emitError() << "@" << program.getName() << " updates, but its last argument is not the hyper-parameters";
  return success();
}

/// The bucket of a parameter, or null, with an error on `user`.
state::BucketOp ProgramUses::bucketOf(Operation *user, FlatSymbolRefAttr parameter) const {
  state::BucketOp bucket = homeOf(parameter).bucket;
  if (!bucket) user->emitOpError() << parameter << " lies in no bucket; run zero-partition first";
  return bucket;
}

LogicalResult ProgramUses::findReads() {
  program.walk([&](nn::GetOp get) {
    readAs[homeOf(get.getParameterAttr()).bucket] = cast<ShapedType>(get.getType()).getElementType();
    collectReads(get, reads);
  });
  for (Read &read : reads) {
    state::BucketOp bucket = bucketOf(read.get, read.get.getParameterAttr());
    if (!bucket) return failure();
    Operation *&last = lastRead[bucket], *&first = firstRead[bucket], *reader = read.operand->getOwner();
    if (!first || reader->isBeforeInBlock(first)) first = reader;
    last = later(last, read.operand->getOwner());
  }
  return success();
}

LogicalResult ProgramUses::findGradients() {
  llvm::DenseMap<Attribute, size_t> found; // of each parameter
  for (auto gradient : program.getOps<nn::GradientOp>()) {
    state::BucketOp bucket = bucketOf(gradient, gradient.getParameterAttr());
    if (!bucket) return failure();
    size_t micro = found[gradient.getParameterAttr()]++; // they stand in the order of micro-steps
    gradients[bucket].resize(std::max(gradients[bucket].size(), micro + 1));
    gradients[bucket][micro].push_back(gradient);
  }
  if (role == "eval") return success();
  for (state::BucketOp bucket : buckets) {
    size_t count = 0, expected = bucket.getParameters().size() * microSteps;
    for (auto &micro : gradients[bucket]) count += micro.size();
    if (bucket.getTrainable() && (count != expected || gradients[bucket].size() != microSteps))
      return bucket.emitError() << "has " << bucket.getParameters().size() << " parameters"
                                << (microSteps > 1 ? " in " + std::to_string(microSteps) + " micro-steps" : "") << " but @"
                                << program.getName() << " yields " << count << " gradients for it";
  }
  return success();
}

} // namespace zero::shard

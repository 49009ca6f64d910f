//===- states.cpp - the persistent buffers of a module --------------------------------------------===//
#include "passes/schedule/states.h"
#include "compiler/codegen/codegen.h"
#include "compiler/nn/Nn.h"

using namespace mlir;
using zero::planir::BufferKind;
using zero::planir::StateOp;

namespace zero::schedule {

States::States(ModuleOp module) : module(module), symbols(module), builder(module.getBodyRegion()) {
  world = state::worldOf(module);
  // States stand in front of the programs, after buckets and parameters.
  for (auto function : module.getOps<func::FuncOp>()) {
    builder.setInsertionPoint(function);
    return;
  }
}

StateOp States::get(const std::string &name, BufferKind kind, int64_t bytes, Location loc) {
  StateOp &state = made[name];
  if (!state) {
    state = builder.create<StateOp>(loc, name, kind, bytes, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    nullptr);
    symbols.insert(state); // renames it if a parameter or kernel is called the same
  }
  return state;
}

FailureOr<const States::Pairs *> States::inplace(FlatSymbolRefAttr kernel) {
  auto [entry, isNew] = pairs.try_emplace(kernel);
  if (!isNew) return &entry->second;
  auto function = symbols.lookup<func::FuncOp>(kernel.getAttr());
  if (auto given = function->getAttrOfType<ArrayAttr>(nn::NnDialect::kInplaceAttr)) {
    for (auto pair : given.getAsRange<ArrayAttr>())
      entry->second.push_back({unsigned(cast<IntegerAttr>(pair[0]).getInt()), unsigned(cast<IntegerAttr>(pair[1]).getInt())});
  } else if (!function.isExternal()) {
    auto info = codegen::describe(function);
    if (failed(info)) return failure();
    entry->second = std::move(info->inplace);
  }
  return &entry->second;
}

/// What people will call a tensor of a bucket, and what kind of memory it is to them.
static std::pair<StringRef, BufferKind> namedBy(state::Role role) {
  switch (role) {
  case state::Role::master:
    return {".parameter", BufferKind::parameter};
  case state::Role::compute:
    return {".compute", BufferKind::parameter};
  case state::Role::gradient:
    return {".gradient", BufferKind::gradient};
  case state::Role::first_moment:
    return {".m", BufferKind::optimizer};
  case state::Role::second_moment:
    return {".v", BufferKind::optimizer};
  case state::Role::momentum:
    return {".momentum", BufferKind::optimizer};
  }
  llvm_unreachable("a role that is none");
}

LogicalResult States::checkTensors() {
  auto found = module.walk([&](Operation *op) -> WalkResult {
    auto needs = [&](FlatSymbolRefAttr name, state::Role role) -> WalkResult {
      if (bucket(name).tensorOf(role)) return success();
      return op->emitOpError() << "needs the " << state::stringifyRole(role) << " of bucket " << name << ", which keeps none";
    };
    auto needsParameters = [&](FlatSymbolRefAttr name) { return needs(name, bucket(name).readRole()); };
    if (auto use = dyn_cast<state::ResidentOp>(op)) return needsParameters(use.getBucketAttr());
    if (auto use = dyn_cast<state::GatherOp>(op)) return needsParameters(use.getBucketAttr());
    if (auto use = dyn_cast<state::LookUpOp>(op)) return needsParameters(use.getBucketAttr());
    if (auto use = dyn_cast<state::UpdateOp>(op)) return needs(use.getBucketAttr(), state::Role::master);
    if (auto use = dyn_cast<state::PublishOp>(op)) return needsParameters(use.getBucketAttr());
    if (auto use = dyn_cast<state::AccumulateOp>(op); use && !use.getOnto()) return needs(use.getBucketAttr(), state::Role::gradient);
    return success();
  });
  return failure(found.wasInterrupted());
}

StateOp States::tensor(state::BucketOp bucket, state::Role role) {
  state::TensorAttr tensor = bucket.tensorOf(role);
  auto [suffix, kind] = namedBy(role);
  if (role != bucket.readRole() && kind == BufferKind::parameter) kind = BufferKind::optimizer; // a master that nothing but updates reads
  StateOp state = get((bucket.getSymName() + suffix).str(), kind, planir::roomOf(bucket, tensor), bucket.getLoc());
  state.setBucketAttr(FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
  state.setTensorAttr(tensor);
  return state;
}

StateOp States::input(func::FuncOp program, unsigned index) {
  auto name = program.getArgAttrOfType<StringAttr>(index, nn::NnDialect::kNameAttr);
  auto role = program.getArgAttrOfType<StringAttr>(index, nn::NnDialect::kRoleAttr);
  if (!name || !role) {
    program.emitError() << "argument " << index << " of program @" << program.getName() << " has no nn.name or nn.role";
    return nullptr;
  }
  auto type = cast<RankedTensorType>(program.getArgumentTypes()[index]);
  auto micro = program.getArgAttrOfType<IntegerAttr>(index, state::ZeroDialect::kMicroStep);
  std::string suffix = micro ? ("." + Twine(micro.getInt())).str() : "";
  auto state = get("input." + name.str() + suffix, BufferKind::input, nn::bytesOf(type), program.getLoc());
  if (state.getType() && (*state.getType() != type || state.getRole() != role.getValue())) {
    program.emitError() << "input '" << name.getValue() << "' is " << type << " in program @" << program.getName() << " but "
                        << *state.getType() << " in another";
    return nullptr;
  }
  state.setInputAttr(name);
  state.setRoleAttr(role);
  state.setTypeAttr(TypeAttr::get(type));
  if (micro) state.setMicroStep(micro.getInt());
  if (auto limit = program.getArgAttrOfType<IntegerAttr>(index, nn::NnDialect::kLimitAttr)) state.setLimit(limit.getInt());
  if (auto classes = program.getArgAttrOfType<DenseI64ArrayAttr>(index, nn::NnDialect::kClassesAttr)) state.setClassesAttr(classes);
  return state;
}

StateOp States::constant(ElementsAttr value) {
  StateOp &state = constants[value]; // attributes are unique, so equal constants are one buffer
  if (!state) {
    state =
        get("constant." + std::to_string(constants.size() - 1), BufferKind::constant, nn::bytesOf(value.getShapedType()), module.getLoc());
    state.setValueAttr(value);
  }
  return state;
}

StateOp States::result(StringRef name, int64_t bytes) {
  auto state = get(("result." + name).str(), BufferKind::scalar, bytes, module.getLoc());
  if (int64_t(state.getBytes()) < bytes) state.setBytes(bytes);
  return state;
}

} // namespace zero::schedule

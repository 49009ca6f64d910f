//===- states.cpp - the persistent buffers of a module --------------------------------------------===//
#include "passes/schedule/states.h"
#include "compiler/codegen/codegen.h"
#include "compiler/nn/Nn.h"

using namespace mlir;
using zero::planir::BufferKind;
using zero::planir::StateOp;

namespace zero::schedule {

States::States(ModuleOp module) : module(module), symbols(module), builder(module.getBodyRegion()) {
  auto number = [&](StringRef name, int64_t otherwise) {
    auto attribute = module->getAttrOfType<IntegerAttr>(name);
    return attribute ? attribute.getInt() : otherwise;
  };
  world = number(state::ZeroDialect::kWorld, 1);
  stage = number(state::ZeroDialect::kStage, 0);
  if (auto kind = module->getAttrOfType<StringAttr>(state::ZeroDialect::kOptimizer)) optimizerKind = kind.str();
  // States stand in front of the programs, behind buckets and parameters.
  for (auto function : module.getOps<func::FuncOp>()) {
    builder.setInsertionPoint(function);
    return;
  }
}

StateOp States::get(const std::string &name, BufferKind kind, int64_t bytes, Location loc) {
  StateOp &state = made[name];
  if (!state) {
    state = builder.create<StateOp>(loc, name, kind, bytes, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
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

static int64_t elementBytes() { return 4; } // model state is f32

StateOp States::parameter(state::BucketOp bucket) {
  int64_t elements = shardsParameters() ? bucket.getShard() : bucket.getElements();
  auto state = get((bucket.getSymName() + ".parameter").str(), BufferKind::parameter, elements * elementBytes(), bucket.getLoc());
  state.setBucketAttr(FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
  return state;
}

StateOp States::optimizer(state::BucketOp bucket, int64_t slot) {
  static const char *const adamw[] = {".m", ".v"};
  std::string suffix = optimizerKind == "sgd" ? ".momentum" : adamw[slot];
  int64_t elements = stage == 0 ? bucket.getElements() : bucket.getShard();
  auto state = get(bucket.getSymName().str() + suffix, BufferKind::optimizer, elements * elementBytes(), bucket.getLoc());
  state.setBucketAttr(FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
  state.setSlot(slot);
  return state;
}

StateOp States::accumulator(state::BucketOp bucket) {
  auto state = get((bucket.getSymName() + ".gradient").str(), BufferKind::gradient, bucket.getShard() * elementBytes(), bucket.getLoc());
  state.setBucketAttr(FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
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
  auto state = get("input." + name.str(), BufferKind::input, nn::bytesOf(type), program.getLoc());
  if (state.getType() && (*state.getType() != type || state.getRole() != role.getValue())) {
    program.emitError() << "input '" << name.getValue() << "' is " << type << " in program @" << program.getName() << " but "
                        << *state.getType() << " in another";
    return nullptr;
  }
  state.setInputAttr(name);
  state.setRoleAttr(role);
  state.setTypeAttr(TypeAttr::get(type));
  if (auto limit = program.getArgAttrOfType<IntegerAttr>(index, nn::NnDialect::kLimitAttr)) state.setLimit(limit.getInt());
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

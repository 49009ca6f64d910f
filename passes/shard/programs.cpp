//===- programs.cpp - zero-programs ----------------------------------------------------------------===//
#include "compiler/nn/Nn.h"
#include "passes/shard/Passes.h"

#define DEBUG_TYPE "zero-programs"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_PROGRAMSPASS
#include "passes/shard/Passes.h.inc"

namespace {

struct Programs : impl::ProgramsPassBase<Programs> {
  using ProgramsPassBase::ProgramsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>("train"), eval = module.lookupSymbol<func::FuncOp>("eval");
    auto accumulate = module->getAttrOfType<IntegerAttr>(state::ZeroDialect::kAccumulate);
    if (!train || !eval || train.isExternal() || eval.isExternal() || !accumulate) {
      module.emitError() << "needs @train, @eval and the attributes of zero-partition";
      return signalPassFailure();
    }
    StringRef role = accumulate.getInt() == 1 || module->hasAttr(state::ZeroDialect::kVertical) ? "step" : "last";
    if (role == "last") {
      make(train, "first", "first", /*updates=*/false, /*clips=*/false);
      if (accumulate.getInt() > 2) make(train, "middle", "middle", false, false);
    }
    // With a scaled loss every update waits for the norm, and not to clip is to clip to infinity.
    bool allWait = module->hasAttr(state::ZeroDialect::kScalesLoss);
    if (allWait || clip != "always") make(train, role, role, true, false);
    if (!allWait && clip != "never") make(train, (role + "_clip").str(), role, true, true);
    train.erase();
    eval->setAttr(state::ZeroDialect::kRole, StringAttr::get(&getContext(), "eval"));
  }

  /// A copy of @train; an updating one also takes the hyper-parameters.
  void make(func::FuncOp train, StringRef name, StringRef role, bool updates, bool clips) {
    OpBuilder b(train);
    auto program = cast<func::FuncOp>(b.clone(*train));
    std::string free = name.str(); // a model may have a parameter called "step"
    while (train->getParentOfType<ModuleOp>().lookupSymbol(free)) free += "_program";
    program.setName(free);
    program->setAttr(state::ZeroDialect::kRole, b.getStringAttr(role));
    if (clips) program->setAttr(state::ZeroDialect::kClips, b.getUnitAttr());
    if (updates) {
      auto attributes = b.getDictionaryAttr({b.getNamedAttr(nn::NnDialect::kNameAttr, b.getStringAttr("hyper")),
                                             b.getNamedAttr(nn::NnDialect::kRoleAttr, b.getStringAttr("hyper"))});
      program.insertArgument(program.getNumArguments(), RankedTensorType::get({16}, b.getF32Type()), attributes, train.getLoc());
    }
  }
};

} // namespace
} // namespace zero::shard

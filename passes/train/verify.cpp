//===- verify.cpp - nn-verify-train --------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/train/Passes.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_VERIFYTRAINPASS
#include "passes/train/Passes.h.inc"

namespace {
using nn::NnDialect;

struct VerifyTrain : impl::VerifyTrainPassBase<VerifyTrain> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>("train"), eval = module.lookupSymbol<func::FuncOp>("eval");
    if (!train || !eval || train.isExternal() || eval.isExternal()) {
      module.emitError("after the train phase there are @train and @eval; one is missing");
      return signalPassFailure();
    }
    if (failed(nn::verifyTensorFunction(train)) || failed(nn::verifyTensorFunction(eval))) return signalPassFailure();
    bool good = true; // each check speaks, in this order
    for (auto function : {train, eval}) good &= checkSignature(function);
    for (auto function : {train, eval}) good &= checkBody(function);
    if (train.getArgumentTypes() != eval.getArgumentTypes() || train.getAllArgAttrs() != eval.getAllArgAttrs()) {
      eval.emitError("arguments of @eval differ from those of @train");
      good = false;
    }
    if (!eval.getOps<nn::GradientOp>().empty()) {
      eval.emitError("@eval hands out a gradient");
      good = false;
    }
    good &= checkGradients(module, train);
    if (!good) signalPassFailure();
  }

  bool checkSignature(func::FuncOp function) {
    if (function.getNumResults() != 1 || cast<ShapedType>(function.getResultTypes()[0]).getRank() > 1)
      return function.emitError("must return the loss alone, one number for each of its terms"), false;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (!function.getArgAttr(i, NnDialect::kNameAttr) || !function.getArgAttr(i, NnDialect::kRoleAttr))
        return function.emitError() << "argument #" << i << " lacks nn.name or nn.role", false;
    return true;
  }

  bool checkBody(func::FuncOp function) {
    bool good = true;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<nn::CompositeOpInterface, nn::LaunchOp>(op) || !isa_and_nonnull<NnDialect>(op.getDialect())) {
        op.emitError() << "'" << op.getName() << "' may not be left by the train phase";
        good = false;
      }
    }
    return good;
  }

  bool checkGradients(ModuleOp module, func::FuncOp train) {
    bool good = true;
    llvm::StringMap<int> found;
    for (auto gradient : train.getOps<nn::GradientOp>()) ++found[gradient.getParameter()];
    for (auto parameter : module.getOps<nn::ParameterOp>())
      if (int n = found.lookup(parameter.getSymName()); n != int(parameter.getTrainable())) {
        parameter.emitError() << "parameter '" << parameter.getSymName() << "' has " << n << " gradients in @train, expected "
                              << int(parameter.getTrainable());
        good = false;
      }
    return good;
  }
};

} // namespace
} // namespace zero::train

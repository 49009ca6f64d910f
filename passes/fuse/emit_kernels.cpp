//===- emit_kernels.cpp - nn-emit-kernels --------------------------------------------------------------------===//
#include "compiler/codegen/codegen.h"
#include "passes/fuse/Passes.h"

using namespace mlir;

namespace zero::fuse {
#define GEN_PASS_DEF_EMITKERNELSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

struct EmitKernelsPass : impl::EmitKernelsPassBase<EmitKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> kernels;
    for (auto f : module.getOps<func::FuncOp>())
      if (f->hasAttr(nn::NnDialect::kKernelAttr)) kernels.push_back(f);
    auto code = codegen::emitKernels(getContext(), kernels, lanes);
    if (failed(code)) return signalPassFailure();
    Builder b(&getContext());
    for (func::FuncOp kernel : kernels) {
      if (!describe) break;
      auto info = codegen::describe(kernel);
      if (failed(info)) return signalPassFailure();
      auto function = (*code)->lookupSymbol<func::FuncOp>(kernel.getSymName());
      auto number = [&](StringRef name, uint64_t value) { function->setAttr(name, b.getI64IntegerAttr(value)); };
      number("extent", info->extent);
      number("grain", info->grain);
      number("flops", info->flops);
      number("bytes", info->bytes);
      SmallVector<Attribute> pairs;
      for (auto [result, operand] : info->inplace) pairs.push_back(b.getI64ArrayAttr({int64_t(result), int64_t(operand)}));
      function->setAttr("inplace", b.getArrayAttr(pairs));
      function->setAttr("summary", b.getStringAttr(info->summary));
    }
    module.getBody()->clear();
    module.getBody()->getOperations().splice(module.getBody()->end(), (*code)->getBody()->getOperations());
  }
};

} // namespace
} // namespace zero::fuse

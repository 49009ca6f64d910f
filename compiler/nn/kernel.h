//===- kernel.h - a kernel that is being written --------------------------------------------------===//
#pragma once
#include "compiler/nn/build.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero::nn {

/// A private function with the attribute nn.kernel at the end of a module: its arguments, operations on them by `b`, and its results.
struct KernelBuilder {
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  Build b;

  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, llvm::ArrayRef<mlir::Type> arguments)
      : builder(module.getContext()), b{builder, mlir::NameLoc::get(builder.getStringAttr(name))} {
    builder.setInsertionPointToEnd(module.getBody());
    function = builder.create<mlir::func::FuncOp>(b.loc, name, builder.getFunctionType(arguments, {}));
    function.setPrivate();
    function->setAttr(NnDialect::kKernelAttr, builder.getUnitAttr());
    builder.setInsertionPointToStart(function.addEntryBlock());
  }
  KernelBuilder(const KernelBuilder &) = delete; // `b` names its builder

  mlir::Value arg(size_t i) { return function.getArgument(unsigned(i)); }
  mlir::func::FuncOp finish(mlir::ValueRange results) {
    builder.create<mlir::func::ReturnOp>(b.loc, results);
    function.setType(builder.getFunctionType(function.getArgumentTypes(), results.getTypes()));
    return function;
  }
};

} // namespace zero::nn

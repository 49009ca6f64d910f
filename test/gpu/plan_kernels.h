//===- plan_kernels.h - the kernels of a plan for cuda, from the module they came from ---------------------===//
#pragma once
#include "compiler/codegen/ptx/ptx.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/plan/container.h"
#include "test/gpu/check/kernel_case.h"

namespace zero::test {

struct PlanKernels {
  /// `module`: file of what `zeroc --emit=place` prints with the flags the plan was made with. Throws where it does not fit the plan.
  PlanKernels(const std::string &plan, const std::string &module);

  plan::PlanFile file;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<codegen::GpuKernel> kernels; // in the plan's order
};

/// Attention has none: a processor does it in a step of its own.
bool hasProcessorForm(mlir::func::FuncOp kernel);

/// The kernel without the compiler. Throws where it cannot be compiled.
KernelCase caseOf(mlir::func::FuncOp kernel);

/// Its results as the interpreter computes them. Throws where that does not take it.
void interpret(mlir::func::FuncOp kernel, KernelMemory &memory);

} // namespace zero::test

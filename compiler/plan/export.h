//===- export.h - the plan dialect into plan.proto --------------------------------------------------===//
#pragma once
#include "compiler/codegen/codegen.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/plan.pb.h"
#include <functional>
#include <string>
#include <vector>

namespace zero::planir {

/// What the IR does not know.
struct ExportOptions {
  std::string model;    // path of the ONNX file as given
  std::string producer; // "zeroc 0.1"
  plan::Target target;
  uint64_t initSeed = 0; // every parameter's random seed is made of this and its name
  /// How a kernel is launched on the device; codegen::describe unless a test has another idea. What the host launches, that describes.
  std::function<llvm::FailureOr<codegen::KernelInfo>(mlir::func::FuncOp)> describe;
};

/// A kernel that steps launch; on the host's processors where the target is a device with a memory of its own (lane update_host).
struct LaunchedKernel {
  mlir::func::FuncOp function;
  bool onHost;
};

/// The kernels that steps launch, in the order of Plan.kernels: those that machine code is needed for. The host's come last. One that is
/// launched on both is there twice.
std::vector<LaunchedKernel> launchedKernels(mlir::ModuleOp module);

/// Fills `plan`, all but the segments, from a module that passed `plan-verify`, and `constants`, the constant segment. Errors are reported
/// where they were found.
llvm::LogicalResult exportPlan(mlir::ModuleOp module, const ExportOptions &options, plan::Plan &plan, std::vector<char> &constants);

} // namespace zero::planir

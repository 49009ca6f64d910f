//===- ptx.h - kernels of the nn dialect to PTX -----------------------------------------------------------===//
// As codegen.h for a GPU: text that the driver of any machine's GPU compiles, made without one.
#pragma once
#include "compiler/codegen/codegen.h"

namespace zero::codegen {

struct GpuTarget {
  std::string architecture; // "sm_90"

  /// Whether it has products of warpgroups, which sm_90a has alone: later GPUs do not run its code.
  bool warpgroups() const { return architecture == "sm_90a"; }
  /// Of PTX: the oldest that has what kernels use.
  const char *version() const { return warpgroups() ? "+ptx80" : "+ptx75"; }

  /// "sm_80", "sm_90" or "sm_90a". On failure `error` holds a sentence.
  static llvm::FailureOr<GpuTarget> fromName(llvm::StringRef name, std::string &error);
};

/// As `describe`, with the grid.
llvm::FailureOr<KernelInfo> describeForGpu(mlir::func::FuncOp kernel);

struct GpuKernel {
  mlir::func::FuncOp function;
  std::vector<unsigned> alignment; // bytes that each argument's address is a multiple of in all launches; empty: those of its type
};

/// One module, made by up to `threads` threads, whose number does not change a byte. Per kernel it has an entry SYMBOL and the constants
/// SYMBOL_bounds (plan.proto: Kernel). It refers to nothing outside itself.
llvm::FailureOr<std::string> compileToPtx(llvm::ArrayRef<GpuKernel> kernels, const GpuTarget &target, unsigned threads = 1);

} // namespace zero::codegen

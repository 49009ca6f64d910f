//===- gpu_module.h - kernels as LLVM IR for one thread of a GPU ------------------------------------------===//
// Private to the making of PTX and to the test's double of a GPU, which replaces the intrinsics of threads and nothing else.
#pragma once
#include "compiler/codegen/object.h"
#include "llvm/IR/Module.h"
#include <memory>

namespace zero::codegen {

/// Per kernel a function SYMBOL of pointers to its arguments, not optimised yet.
llvm::Expected<std::unique_ptr<llvm::Module>> gpuModule(llvm::LLVMContext &context, llvm::ArrayRef<const KernelSource *> kernels);

} // namespace zero::codegen

//===- double.h - kernels for a GPU as machine code of the processor --------------------------------------===//
// Test double: the very LLVM IR that PTX is made of, with the intrinsics of threads, barriers and shuffles replaced by calls (fibers.h).
#pragma once
#include "compiler/codegen/ptx/ptx.h"

namespace zero::test {

/// A shared object for GpuLibrary. Errors are reported on the kernels.
llvm::FailureOr<llvm::SmallVector<char, 0>> compileDouble(llvm::ArrayRef<codegen::GpuKernel> kernels);

} // namespace zero::test

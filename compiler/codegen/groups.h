//===- groups.h - kernels compiled in groups by several threads -------------------------------------------===//
// Private to the making of machine code. Groups depend on the kernels alone, and so does what is made of them: not on the number of
// threads, nor on which of them is done first.
#pragma once
#include "compiler/codegen/object.h"

namespace zero::codegen {

/// The kernels without the context they came from. Errors are reported on the kernels.
llvm::FailureOr<std::vector<KernelSource>> sourcesOf(llvm::ArrayRef<mlir::func::FuncOp> kernels);

using Code = llvm::SmallVector<char, 0>;

/// What `compile` makes of each group, in order, or its first error.
llvm::Expected<std::vector<Code>> compileGroups(llvm::ArrayRef<KernelSource> kernels, unsigned threads,
                                                llvm::function_ref<llvm::Expected<Code>(llvm::ArrayRef<const KernelSource *>)> compile);

} // namespace zero::codegen

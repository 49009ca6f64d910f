//===- object.h - a few kernels to one relocatable object --------------------------------------------===//
// Private to the making of shared objects.
#pragma once
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/program.h"
#include "llvm/Support/Error.h"

namespace zero::codegen {

/// A kernel without the context it came from, so that any thread can make machine code of it.
struct KernelSource {
  Program program;
  KernelInfo info;
  std::vector<unsigned> alignment; // of each argument's first byte, where more is known than its type says; empty: nothing more
};

/// What `describe` says of the kernel, whose program is known.
KernelInfo describe(const Program &program, mlir::func::FuncOp kernel);

/// Fails with an error where only a GPU has such kernels.
llvm::LogicalResult forProcessor(const Program &program, mlir::func::FuncOp kernel);

/// What the code says of a kernel's bounds, which the loader holds against the plan (plan.proto: Kernel).
std::vector<uint64_t> boundsOf(const KernelInfo &info);

/// An ELF object with the kernels and their bounds, made in contexts of its own: calls on several threads do not meet.
/// The same kernels in the same order give the same bytes.
llvm::Expected<llvm::SmallVector<char, 0>> compileObject(llvm::ArrayRef<const KernelSource *> kernels, const CpuTarget &target);

} // namespace zero::codegen

//===- lower.h - vector code of kernels to LLVM IR, and to better LLVM IR --------------------------------===//
// Private to the making of machine code, whichever machine's.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace zero::codegen {

/// What `emit` writes into an empty module (functions over flat memrefs), in a context of its own, as functions of pointers.
llvm::Expected<std::unique_ptr<llvm::Module>> lowerKernels(llvm::LLVMContext &context,
                                                           llvm::function_ref<void(mlir::ModuleOp, mlir::Location)> emit);

/// Sets what the module is for, and optimises it for that machine.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace zero::codegen

//===- dynamic_shared.h - shared memory that a launch gives ------------------------------------------------===//
// A kernel may declare kStaticShared bytes of shared memory itself. What needs more takes all of it from the launch, in one array.
#pragma once
#include "llvm/IR/Module.h"
#include <string>

namespace zero::codegen {

/// The arrays that the kernel declares (GpuEmitter::sharedArray), as parts of one that its launch gives. How many bytes that has.
unsigned gatherShared(llvm::Module &module, const std::string &symbol);

} // namespace zero::codegen

//===- link.h - relocatable objects to one shared object ------------------------------------------------===//
// Private to the making of shared objects.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace zero::codegen {

/// Links in the given order, in this process and off the disk. An object that refers to a symbol outside itself is an error:
/// a kernel that calls anything (a function of the C library, say) would not load everywhere.
llvm::Expected<llvm::SmallVector<char, 0>> link(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects);

} // namespace zero::codegen

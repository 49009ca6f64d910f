//===- accesses.h - how loads and stores of a GPU's kernel are aligned ------------------------------------===//
#pragma once
#include "llvm/IR/Function.h"

namespace zero::codegen {

/// Loads and stores of vectors get the alignment that follows from that of the tensor and from the place in it: 16 bytes at once are one
/// instruction only so. LLVM knows it of most, and gives up where an index is a sum of many terms. Before all else, since what branches
/// load of several tensors becomes one load later, whose address says less.
void alignAccesses(llvm::Function &kernel);

} // namespace zero::codegen

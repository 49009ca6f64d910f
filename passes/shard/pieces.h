//===- pieces.h - a program in pieces that read few buckets ------------------------------------------===//
// The plain data of vertical order: what is done for all micro-steps before the next piece begins.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace zero::shard {

/// Buckets that an operation reads.
using BucketSet = llvm::SmallVector<int64_t, 2>;

/// Where pieces begin, 0 first, in a row of operations: each piece reads at most `most` buckets, unless a single operation reads more, and
/// goes as far as that allows. None for no operations.
std::vector<size_t> cutPieces(llvm::ArrayRef<BucketSet> operations, int64_t most);

} // namespace zero::shard

//===- dims.h - dimensions of two shapes with the same elements --------------------------------------===//
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace zero::nn {

/// The dimensions [from, fromEnd) of one shape that are [to, toEnd) of the other one: as many elements, and none less would be.
struct DimGroup {
  size_t from, fromEnd, to, toEnd;
};

/// Of two shapes that a reshape leads from and to, the first dimensions first.
llvm::SmallVector<DimGroup> dimGroups(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

} // namespace zero::nn

//===- dims.cpp - dimensions of two shapes with the same elements ------------------------------------===//
#include "compiler/nn/dims.h"

namespace zero::nn {

llvm::SmallVector<DimGroup> dimGroups(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<DimGroup> groups;
  for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    DimGroup group{i, i, j, j};
    int64_t a = 1, b = 1;
    if (i < from.size()) a = from[i++];
    if (j < to.size()) b = to[j++];
    while (a != b) {
      if ((a < b && i < from.size()) || j == to.size())
        a *= from[i++];
      else
        b *= to[j++];
    }
    group.fromEnd = i, group.toEnd = j;
    groups.push_back(group);
  }
  return groups;
}

} // namespace zero::nn

//===- groups.cpp - rows put into groups, for products with a matrix of each ------------------------------===//
#include "passes/raise/groups.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {

/// Lower blocks are products that no library is good at.
static constexpr int64_t kLowest = 8;

GroupRowsOp groupRows(Value group, int64_t groups, Blocks blocks, OpBuilder &b) {
  int64_t rows = std::max<int64_t>(typeOf(group).getDimSize(0) / groups / std::max<int64_t>(blocks.each, 1), 1);
  int64_t height = std::clamp<int64_t>(int64_t(llvm::bit_floor(uint64_t(rows))), kLowest, std::max<int64_t>(blocks.height, kLowest));
  for (Operation *user : group.getUsers())
    if (auto known = dyn_cast<GroupRowsOp>(user); known && int64_t(known.getGroups()) == groups && int64_t(known.getHeight()) == height)
      return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(group);
  return b.create<GroupRowsOp>(group.getLoc(), group, groups, height);
}

} // namespace zero::raise

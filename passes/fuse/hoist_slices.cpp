//===- hoist_slices.cpp - slices before what moves the whole ----------------------------------------------===//
#include "passes/fuse/hoist_slices.h"
#include "compiler/nn/dims.h"
#include "passes/fuse/access.h"
#include "passes/fuse/parts.h"
#include <map>

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

constexpr unsigned kMostHoisted = 16; // operations of which a slice is taken before

/// Neighbouring elements along each dimension.
struct Range {
  SmallVector<int64_t> starts, sizes;
};

/// A range of some dimensions as one of all their elements in a row; none if they do not neighbour each other.
std::optional<std::pair<int64_t, int64_t>> flatten(ArrayRef<int64_t> shape, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes) {
  int64_t start = 0, size = 1;
  bool several = false; // of a dimension before
  for (auto [all, first, count] : llvm::zip(shape, starts, sizes)) {
    if (several && count != all) return std::nullopt;
    several |= count > 1;
    start = start * all + first;
    size *= count;
  }
  return std::pair(start, size);
}

/// `size` elements in a row, from `start` on, as a range of dimensions.
bool unflatten(ArrayRef<int64_t> shape, int64_t start, int64_t size, Range &range) {
  int64_t row = 1;
  for (int64_t all : shape) row *= all;
  for (int64_t all : shape) {
    row /= all;
    int64_t first = start / row;
    bool inside = start + size <= (first + 1) * row; // of one row
    if (!inside && (start % row || size % row)) return false;
    range.starts.push_back(first);
    range.sizes.push_back(inside ? 1 : size / row);
    start = inside ? start - first * row : 0;
    size = inside ? size : row; // of rows that are whole
  }
  return true;
}

/// What `range` of a reshape's result is of its operand.
std::optional<Range> above(ReshapeOp op, const Range &range) {
  auto shapeOf = [](Value v) { return cast<RankedTensorType>(v.getType()).getShape(); };
  ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
  Range found;
  for (const DimGroup &group : dimGroups(from, to)) {
    auto of = [&](ArrayRef<int64_t> all) { return all.slice(group.to, group.toEnd - group.to); };
    auto flat = flatten(of(to), of(range.starts), of(range.sizes));
    if (!flat || !unflatten(from.slice(group.from, group.fromEnd - group.from), flat->first, flat->second, found)) return std::nullopt;
  }
  return found;
}

Range above(TransposeOp op, const Range &range) {
  Range found = range;
  for (auto [i, p] : llvm::enumerate(op.getPerm())) found.starts[p] = range.starts[i], found.sizes[p] = range.sizes[i];
  return found;
}

/// A repetition's operand has it all where it has one element.
Range above(BroadcastOp op, const Range &range) {
  Range found;
  for (auto [size, dim] : llvm::zip(cast<RankedTensorType>(op.getInput().getType()).getShape(), op.getDims())) {
    found.starts.push_back(size == 1 ? 0 : range.starts[dim]);
    found.sizes.push_back(size == 1 ? 1 : range.sizes[dim]);
  }
  return found;
}

/// Whether parts of its result can be computed from parts of its operands, for about as much as all of it.
bool isCut(Operation *op) {
  return isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp>(op) || (isa_and_nonnull<PointwiseOpInterface>(op) && !isExpensive(op));
}

/// The `range` of `v`, computed from parts of what it is computed from, by so many operations at most. What others need whole is not
/// computed again: it is cut itself, but for what moves the tensor that is cut first.
Value partOf(Value v, const Range &range, OpBuilder &builder, unsigned &left, bool first = true) {
  ArrayRef<int64_t> sizes = range.sizes;
  if (sizes == cast<RankedTensorType>(v.getType()).getShape()) return v;
  Build b{builder, v.getLoc()};
  auto type = RankedTensorType::get(sizes, elementOf(v));
  Operation *op = v.getDefiningOp();
  bool own = left == kMostHoisted || (first && !isa_and_nonnull<PointwiseOpInterface>(op));
  if (left && isCut(op) && (own || op->hasOneUse())) {
    --left;
    auto operand = [&](const Range &from) { return partOf(op->getOperand(0), from, builder, left, first); };
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      if (std::optional<Range> from = above(reshape, range)) return b.reshape(operand(*from), sizes);
    } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
      return builder.create<TransposeOp>(b.loc, type, operand(above(transpose, range)), transpose.getPerm());
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      return b.broadcast(operand(above(broadcast, range)), sizes, broadcast.getDims());
    } else {
      IRMapping parts;
      for (Value from : op->getOperands())
        if (!parts.contains(from)) parts.map(from, partOf(from, range, builder, left, /*first=*/false));
      Operation *copy = builder.clone(*op, parts);
      copy->getResult(0).setType(type);
      return copy->getResult(0);
    }
  }
  if (auto number = splatOf(v)) return b.splat(type, *number);
  return b.slice(v, range.starts, sizes, SmallVector<int64_t>(sizes.size(), 1));
}

} // namespace

void hoistSlices(func::FuncOp function) {
  std::map<std::pair<void *, SmallVector<int64_t>>, SmallVector<SliceOp>> alike; // of one tensor and size
  std::vector<SmallVector<SliceOp> *> inOrder;
  for (auto slice : function.getOps<SliceOp>()) {
    Value whole = slice.getInput();
    Operation *op = whole.getDefiningOp();
    bool computes = isa_and_nonnull<PointwiseOpInterface>(op);
    if (!isCut(op) || elementsOf(slice) == 0 || llvm::any_of(slice.getSteps(), [](int64_t step) { return step != 1; })) continue;
    if (computes && llvm::any_of(op->getUsers(), [](Operation *user) { return !isa<SliceOp>(user); })) continue;
    auto &parts = alike[{whole.getAsOpaquePointer(), SmallVector<int64_t>(slice.getSizes())}];
    if (parts.empty()) inOrder.push_back(&parts);
    parts.push_back(slice);
  }
  bool hoisted = false;
  for (SmallVector<SliceOp> *parts : inOrder) {
    auto elements = int64_t(parts->size()) * elementsOf(parts->front());
    if (parts->size() < kManyParts || elements > elementsOf(parts->front().getInput())) continue; // windows over each other
    for (SliceOp slice : *parts) {
      OpBuilder builder(slice);
      Range range{SmallVector<int64_t>(slice.getStarts()), SmallVector<int64_t>(slice.getSizes())};
      unsigned left = kMostHoisted;
      slice.replaceAllUsesWith(partOf(slice.getInput(), range, builder, left));
      slice.erase();
    }
    hoisted = true;
  }
  if (!hoisted) return;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isCut(&op) && op.use_empty()) op.erase(); // nobody reads it whole any more
}

} // namespace zero::fuse

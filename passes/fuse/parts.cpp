//===- parts.cpp - what kernels read of a tensor that many slices cut -------------------------------------===//
#include "passes/fuse/parts.h"
#include "passes/fuse/access.h"
#include <map>
#include <set>
#include <tuple>

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

constexpr int64_t kAligned = 8; // elements: what begins at a multiple of them is read by whole vectors of 16 bytes, as a tensor is

/// What a slice takes of the first dimension that it cuts. Of all rows, an element of that dimension each, it is `height` in each of
/// `times` blocks of `apart` rows.
struct Cut {
  size_t dim = 0;
  int64_t times = 1, apart = 1, height = 1, columns = 1, first = 0;

  int64_t end() const { return (times - 1) * apart + first + height; }
};

std::optional<Cut> cutOf(SliceOp slice) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(slice.getInput().getType()).getShape();
  if (llvm::any_of(slice.getSteps(), [](int64_t step) { return step != 1; })) return std::nullopt;
  Cut cut;
  while (cut.dim < shape.size() && slice.getSizes()[cut.dim] == shape[cut.dim]) cut.times *= shape[cut.dim++];
  if (cut.dim == shape.size()) return std::nullopt;
  cut.apart = shape[cut.dim], cut.height = slice.getSizes()[cut.dim], cut.first = slice.getStarts()[cut.dim];
  for (int64_t size : shape.drop_front(cut.dim + 1)) cut.columns *= size;
  bool regular = cut.times == 1 || cut.height == 1; // else rows lie at two distances
  if (!regular || cut.columns % kAligned || cut.height == 0) return std::nullopt;
  return cut;
}

} // namespace

RankedTensorType Part::typeOf(Value whole) const { return RankedTensorType::get({count, columns}, getElementTypeOrSelf(whole.getType())); }

Value Part::of(Value whole, Build b) const {
  Value rows = b.reshape(whole, {elementsOf(whole) / columns, columns});
  return b.b.create<RowsOp>(b.loc, typeOf(whole), rows, b.b.getI64IntegerAttr(from));
}

Value wholeOf(Operation *op) {
  auto slice = dyn_cast<SliceOp>(op);
  return slice ? viewed(slice.getInput()) : Value();
}

Value readFrom(Value rows, const Part &part, Operation *op, Build b) {
  auto slice = cast<SliceOp>(op);
  Cut cut = *cutOf(slice);
  bool apart = cut.times > 1;
  auto take = [&](Value from, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
    return b.b.createOrFold<SliceOp>(b.loc, from, starts, sizes, steps);
  };
  Value read = take(rows, {cut.first - part.from, 0}, {apart ? cut.times : cut.height, cut.columns}, {apart ? cut.apart : 1, 1});
  SmallVector<int64_t> shape(cast<RankedTensorType>(slice.getInput().getType()).getShape()), starts(slice.getStarts());
  shape[cut.dim] = cut.height, starts[cut.dim] = 0; // dimensions after it are still whole
  return take(b.reshape(read, shape), starts, slice.getSizes(), slice.getSteps());
}

ManyParts::ManyParts(func::FuncOp function) {
  std::map<std::tuple<void *, int64_t, int64_t, int64_t>, std::set<int64_t>> begins; // of cuts of one tensor that are alike
  for (auto slice : function.getOps<SliceOp>()) {
    Value whole = viewed(slice.getInput());
    std::optional<Cut> cut = cutOf(slice);
    if (!cut || !isFloat(whole) || isa_and_nonnull<GetOp, ConstantOp>(whole.getDefiningOp()) || isa<BlockArgument>(whole)) continue;
    auto &of = begins[{whole.getAsOpaquePointer(), cut->columns, cut->apart, cut->height}];
    if (of.insert(cut->first).second && of.size() == kManyParts) tensors.insert(whole);
  }
}

Parts ManyParts::partsOf(ArrayRef<Value> operands, ArrayRef<Operation *> computed, ValueRange results) const {
  Parts parts(operands.size());
  if (llvm::none_of(operands, [&](Value v) { return tensors.contains(v); })) return parts;
  DenseMap<Value, std::optional<Cut>> read; // of each tensor all that is read; none: more than slices say
  auto readsWhole = [&](Value v) { read[viewed(v)] = std::nullopt; };
  for (Value v : results)
    if (isa<ReshapeOp>(v.getDefiningOp())) readsWhole(v);
  for (Operation *op : computed) {
    auto slice = dyn_cast<SliceOp>(op);
    std::optional<Cut> cut = slice ? cutOf(slice) : std::nullopt;
    if (!cut) {
      if (!isa<ReshapeOp>(op)) llvm::for_each(op->getOperands(), readsWhole);
      continue;
    }
    auto [known, fresh] = read.try_emplace(viewed(slice.getInput()), cut);
    std::optional<Cut> &all = known->second;
    if (fresh || !all) continue;
    if (all->columns != cut->columns || all->apart != cut->apart || all->times != cut->times) {
      all = std::nullopt;
      continue;
    }
    int64_t end = std::max(all->first + all->height, cut->first + cut->height);
    all->first = std::min(all->first, cut->first);
    all->height = end - all->first;
  }
  for (auto [operand, part] : llvm::zip(operands, parts)) {
    std::optional<Cut> all = tensors.contains(operand) ? read.lookup(operand) : std::nullopt;
    if (all) part = {all->columns, all->first, all->end() - all->first};
  }
  return parts;
}

} // namespace zero::fuse

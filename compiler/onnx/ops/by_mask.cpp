//===- by_mask.cpp - what a mask says where to put, or what to take -------------------------------===//
// by_mask.h (of the reader) finds these nodes. A place of the mask is the n-th that holds if n places up to it do: a running sum.
#include "compiler/onnx/ops/indexing.h"

namespace zero::onnx {
namespace {

/// Elements of the last dimensions along which the mask repeats: as one they are put, or are not.
int64_t repeated(const Val &mask) {
  int64_t elements = 1;
  auto broadcast = mask.value ? mask.value.getDefiningOp<nn::BroadcastOp>() : nn::BroadcastOp();
  if (!broadcast) return elements;
  auto from = llvm::cast<mlir::RankedTensorType>(broadcast.getInput().getType()).getShape();
  for (int64_t d = mask.rank() - 1; d >= 0; --d) {
    auto at = llvm::find(broadcast.getDims(), d);
    if (at != broadcast.getDims().end() && from[at - broadcast.getDims().begin()] != 1) break;
    elements *= mask.dim(d);
  }
  return elements;
}

/// The rows of `source` [m, inner] in their order at the rows of a mask [rows] that hold.
Val inOrder(NodeContext &c, const Val &source, const Val &mask) {
  int64_t rows = mask.dim(0);
  Val count = c.e.reshape(c.e.cumsum(c.e.reshape(c.e.convert(mask, c.e.i64()), {1, rows}), /*exclusive=*/true, /*reverse=*/false), {rows});
  Val last = c.e.scalar(double(source.dim(0) - 1), c.e.i64()); // so that no data can make a kernel read beyond it
  return c.e.gather(source, c.e.binary<nn::MinOp>(count, last));
}

} // namespace

Vals putByMask(NodeContext &c) {
  Val data = c.in(0), mask = c.in(1), source = c.in(2);
  if (!data || !mask || !source) return {};
  if (mask.shape() != data.shape() || !mask.isBool()) return c.fail("the mask and the data do not fit together");
  if (!c.node.inputs[3].empty())
    if (auto from = c.knownInts(3); !from || *from != Ints{0}) return c.fail("what a mask puts must begin with the first element");
  if (source.type().getNumElements() == 0) return {data};
  int64_t all = data.type().getNumElements(), inner = repeated(mask), given = source.type().getNumElements();
  if (given == 1 || (given == inner && data.rank() > 0 && inner == data.shape().back())) // the same everywhere
    return {c.e.select(mask, c.e.reshape(source, {given}), data)};
  if (given % inner) inner = 1;
  Val rows = c.e.reshape(c.e.sliceDim(c.e.reshape(mask, {all / inner, inner}), 1, 0, 1), {all / inner});
  Val put = inOrder(c, c.e.reshape(source, {given / inner, inner}), rows);
  return {c.e.select(mask, c.e.reshape(put, data.shape()), data)};
}

Vals pickByMask(NodeContext &c) {
  Val x = c.in(0), mask = c.in(1);
  auto which = c.knownInts(2), rows = c.knownInts(3);
  if (!x || !mask || !which || !rows) return {};
  if (x.rank() != 3 || mask.shape() != x.shape().take_front(2) || !mask.isBool() || c.integer("axis", 0) != 1 ||
      *rows != Ints{x.dim(0), -1, x.dim(2)} || which->size() != 1 || (which->front() != 0 && which->front() != -1))
    return c.fail("of what a mask chooses only the first or the last of each sample is supported");
  bool last = which->front() == -1;
  int64_t batch = x.dim(0), length = x.dim(1), width = x.dim(2);
  Val places = c.e.iota({batch, length}, 1, c.e.i64());
  Val end = c.e.scalar(last ? 0 : double(length - 1), c.e.i64());
  Val place = c.e.reduce(last ? nn::ReductionKind::max : nn::ReductionKind::min, c.e.select(mask, places, end), {1});
  place = c.e.add(place, c.e.mul(c.e.iota({batch}, 0, c.e.i64()), c.e.scalar(double(length), c.e.i64())));
  Val y = c.e.gather(c.e.reshape(x, {batch * length, width}), place);
  return {c.inputs[2].rank() == 0 ? y : c.e.reshape(y, {batch, 1, width})};
}

} // namespace zero::onnx

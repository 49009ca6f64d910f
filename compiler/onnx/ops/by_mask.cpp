//===- by_mask.cpp - what a mask says where to put, or what to take -------------------------------===//
// by_mask.h (of the reader) finds these nodes. A place of the mask is the n-th that holds if n places up to it do: a running sum.
#include "compiler/onnx/ops/indexing.h"

namespace zero::onnx {
namespace {

/// How many dimensions there are in front of those last ones along which a mask repeats: as one these are put, or are not.
int64_t dimensionsBefore(const Val &mask) {
  int64_t d = mask.rank();
  if (mask.isConstant()) {
    const nn::Tensor &known = *mask.constant;
    for (int64_t block = 1; d > 0; --d) {
      block *= mask.dim(d - 1);
      for (int64_t i = 0; i < known.size(); ++i)
        if (known.at(i) != known.at(i / block * block)) return d;
    }
    return d;
  }
  auto broadcast = mask.value ? mask.value.getDefiningOp<nn::BroadcastOp>() : nn::BroadcastOp();
  if (!broadcast) return d;
  auto from = llvm::cast<mlir::RankedTensorType>(broadcast.getInput().getType()).getShape();
  for (; d > 0; --d) {
    auto at = llvm::find(broadcast.getDims(), d - 1);
    if (at != broadcast.getDims().end() && from[at - broadcast.getDims().begin()] != 1) break;
  }
  return d;
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
  if (mask.rank() > data.rank() || mask.shape() != data.shape().take_front(mask.rank()) || !mask.isBool())
    return c.fail("the mask and the data do not fit together");
  if (!c.node.inputs[3].empty())
    if (auto from = c.knownInts(3); !from || *from != Ints{0}) return c.fail("what a mask puts must begin with the first element");
  if (source.type().getNumElements() == 0) return {data};
  bool whole = mask.rank() == data.rank();
  int64_t before = whole ? dimensionsBefore(mask) : mask.rank(), all = data.type().getNumElements(), given = source.type().getNumElements();
  if (!whole) mask = c.e.broadcast(mask, upTo(before), data.shape());
  // One of the same everywhere, as broadcasting has it, has no dimension of rows.
  Shape last = data.shape().drop_front(before), one = source.shape().drop_while([](int64_t size) { return size == 1; });
  if (auto common = broadcastShapes(one, last); common && Shape(*common) == last)
    return {c.e.select(mask, c.e.broadcastTo(c.e.reshape(source, one), data.shape()), data)};
  int64_t inner = *elementsOf(last);
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

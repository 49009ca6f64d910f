//===- gather.cpp - lookups by index ------------------------------------------------------------===//
#include "compiler/onnx/ops/indexing.h"
#include "compiler/onnx/origin.h"

namespace zero::onnx {
namespace {

/// first and step of known indices that form an arithmetic progression.
std::optional<std::pair<int64_t, int64_t>> progression(const Val &indices) {
  if (!indices || !indices.isConstant() || indices.constant->size() == 0) return std::nullopt;
  std::vector<int64_t> t = indices.constant->integers();
  int64_t first = t[0], step = t.size() > 1 ? t[1] - first : 1;
  for (size_t i = 1; i < t.size(); ++i)
    if (t[i] != first + int64_t(i) * step) return std::nullopt;
  if (step == 0) return std::nullopt;
  return std::pair{first, step};
}

} // namespace

Val rowsAt(NodeContext &c, const Val &table, const Val &indices) {
  if (!table || !indices) return {};
  if (auto p = progression(indices)) {
    Ints from(table.rank(), 0), size(table.shape().begin(), table.shape().end()), step(table.rank(), 1);
    from[0] = p->first;
    size[0] = indices.type().getNumElements();
    step[0] = p->second;
    Ints shape(indices.shape().begin(), indices.shape().end());
    shape.append(table.shape().begin() + 1, table.shape().end());
    return c.e.reshape(c.e.slice(table, from, size, step), shape);
  }
  return c.e.gather(table, indices);
}

Val linearIndex(NodeContext &c, const Val &indices, Shape dims) {
  int64_t k = int64_t(dims.size());
  Ints shape(indices.shape().begin(), indices.shape().end() - 1);
  Val sum;
  for (int64_t i = 0; i < k; ++i) {
    Val part = c.e.reshape(c.e.sliceDim(indices, indices.rank() - 1, i, i + 1), shape);
    part = c.importer.checkedIndices(part, dims[i], c.e);
    int64_t stride = *elementsOf(dims.drop_front(i + 1));
    if (part && stride != 1) part = c.e.mul(part, c.e.scalar(double(stride), part.element()));
    sum = i ? c.e.add(sum, part) : part;
  }
  return sum;
}

namespace {

/// Rows of an embedding, of which that of the padding gets no gradient.
Val embedded(NodeContext &c, const Val &table, const Val &indices) {
  Val rows = rowsAt(c, table, indices);
  auto padding = paddingRow(c.node);
  if (auto call = argumentsOf(c.node, "embedding.default"); call.size() > 3 && call[3] == "True" && rows && !rows.isConstant())
    return c.e.fail("scale_grad_by_freq=True of its embedding, which the exporter has dropped, is not supported");
  if (!padding || !rows || rows.isConstant() || !rows.isFloat()) return rows;
  Ints shape(indices.shape().begin(), indices.shape().end());
  shape.resize(rows.rank(), 1);
  Val isPadding = c.e.compare(nn::Predicate::eq, indices, c.e.scalar(double(*padding), indices.element()));
  return c.e.select(c.e.reshape(isPadding, shape), c.e.unary<nn::DetachOp>(rows), rows);
}

Vals gather(NodeContext &c) {
  if (c.node.mask == Node::Mask::Pick) return pickByMask(c);
  Val x = c.in(0), indices = c.in(1);
  if (!x || !indices) return {};
  int64_t axis = c.dimension(c.integer("axis", 0), x.rank());
  if (axis < 0 || x.rank() == 0) return {};
  indices = c.importer.checkedIndices(indices, x.dim(axis), c.e);
  if (axis == 0 || !indices) return {embedded(c, x, indices)};
  if (progression(indices)) { // a slice needs no transposition
    auto [first, by] = *progression(indices);
    Ints from(x.rank(), 0), size(x.shape().begin(), x.shape().end()), step(x.rank(), 1), shape(x.shape().begin(), x.shape().begin() + axis);
    from[axis] = first;
    size[axis] = indices.type().getNumElements();
    step[axis] = by;
    shape.append(indices.shape().begin(), indices.shape().end());
    shape.append(x.shape().begin() + axis + 1, x.shape().end());
    return {c.e.reshape(c.e.slice(x, from, size, step), shape)};
  }
  // Bring the axis to the front, look up, and put the dimensions of the indices where the axis was.
  Ints front{axis};
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) front.push_back(i);
  Val y = c.e.gather(c.e.transpose(x, front), indices);
  int64_t n = indices.rank();
  Ints back;
  for (int64_t i = 0; i < axis; ++i) back.push_back(n + i);
  for (int64_t i = 0; i < n; ++i) back.push_back(i);
  for (int64_t i = n + axis; y && i < y.rank(); ++i) back.push_back(i);
  return {c.e.transpose(y, back)};
}

Vals gatherElements(NodeContext &c) {
  Val x = c.in(0), indices = c.in(1);
  if (!x || !indices) return {};
  if (x.rank() != indices.rank() || x.rank() == 0) return c.fail("data and indices differ in rank");
  int64_t axis = c.dimension(c.integer("axis", 0), x.rank());
  if (axis < 0) return {};
  Ints from(x.rank(), 0), size(indices.shape().begin(), indices.shape().end());
  size[axis] = x.dim(axis);
  for (int64_t i = 0; i < x.rank(); ++i)
    if (size[i] > x.dim(i)) return c.fail("indices are longer than data along dimension " + llvm::Twine(i));
  x = c.e.slice(x, from, size, Ints(x.rank(), 1));
  indices = c.importer.checkedIndices(indices, size[axis], c.e);
  Ints perm = upTo(x ? x.rank() : 0);
  std::swap(perm[axis], perm.back());
  x = c.e.transpose(x, perm);
  indices = c.e.transpose(indices, perm);
  if (!x || !indices) return {};
  Ints shape(indices.shape().begin(), indices.shape().end());
  if (shape.back() == 1) {
    Shape rows = Shape(shape).drop_back();
    return {c.e.transpose(c.e.reshape(c.e.takeAlong(x, c.e.reshape(indices, rows)), shape), perm)};
  }
  return {c.e.transpose(c.e.takeAlong(x, indices), perm)};
}

Vals gatherNd(NodeContext &c) {
  Val x = c.in(0), indices = c.in(1);
  if (!x || !indices) return {};
  int64_t batch = c.integer("batch_dims", 0), k = indices.rank() ? indices.shape().back() : 0;
  if (batch < 0 || k <= 0 || batch + k > x.rank() || indices.rank() <= batch ||
      x.shape().take_front(batch) != indices.shape().take_front(batch))
    return c.fail("data, indices and batch_dims do not fit together");
  Val at = linearIndex(c, indices, x.shape().slice(batch, k));
  int64_t rows = *elementsOf(x.shape().slice(batch, k)), batches = *elementsOf(x.shape().take_front(batch));
  if (at && batch) {
    Ints column(at.rank(), 1);
    int64_t size = batches;
    Val base = c.e.mul(c.e.iota({size}, 0, at.element()), c.e.scalar(double(rows), at.element()));
    Ints lead(at.shape().begin(), at.shape().begin() + batch);
    std::copy(lead.begin(), lead.end(), column.begin());
    at = c.e.add(at, c.e.reshape(base, column));
  }
  Ints flat{batches * rows};
  flat.append(x.shape().begin() + batch + k, x.shape().end());
  return {rowsAt(c, c.e.reshape(x, flat), at)};
}

} // namespace

void registerGathers(Registry &r) {
  r["Gather"] = {gather};
  r["GatherElements"] = {gatherElements, 11};
  r["GatherND"] = {gatherNd, 11};
}

} // namespace zero::onnx

//===- indexing.cpp - lookups, scatters, running sums, selections --------------------------------===//
#include "compiler/onnx/importer.h"
#include <cmath>
#include <numeric>

namespace zero::onnx {
namespace {

/// first and step of known indices that form an arithmetic progression.
std::optional<std::pair<int64_t, int64_t>> progression(const Val &indices) {
  if (!indices || !indices.isConstant() || indices.constant->size() == 0) return std::nullopt;
  const nn::Tensor &t = *indices.constant;
  auto at = [&](int64_t i) { return t.elementType().isInteger(64) ? t.data<int64_t>()[i] : int64_t(t.at(i)); };
  int64_t first = at(0), step = t.size() > 1 ? at(1) - first : 1;
  for (int64_t i = 1; i < t.size(); ++i)
    if (at(i) != first + i * step) return std::nullopt;
  if (step == 0) return std::nullopt;
  return std::pair{first, step};
}

/// Rows of `table` (dimension 0) at non-negative `indices`: a slice where the indices are known and evenly spaced.
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

Vals gather(NodeContext &c) {
  Val x = c.in(0), indices = c.in(1);
  if (!x || !indices) return {};
  int64_t axis = c.dimension(c.integer("axis", 0), x.rank());
  if (axis < 0 || x.rank() == 0) return {};
  indices = c.importer.checkedIndices(indices, x.dim(axis), c.e);
  if (axis == 0 || !indices) return {rowsAt(c, x, indices)};
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
  // Several elements per row: look up in the flat tensor.
  int64_t columns = x.shape().back(), rows = *elementsOf(x.shape().drop_back());
  Val base = c.e.mul(c.e.iota({rows, 1}, 0, indices.element()), c.e.scalar(double(columns), indices.element()));
  Val flat = c.e.add(c.e.reshape(indices, {rows, shape.back()}), base);
  Val y = rowsAt(c, c.e.reshape(x, {rows * columns}), flat);
  return {c.e.transpose(c.e.reshape(y, shape), perm)};
}

/// One index into the flattened first dimensions [skip, skip + k) of `shape` per tuple in the last dimension of
/// `indices` [batch…, …, k].
Val linear(NodeContext &c, Val indices, Shape dims) {
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

Vals gatherNd(NodeContext &c) {
  Val x = c.in(0), indices = c.in(1);
  if (!x || !indices) return {};
  int64_t batch = c.integer("batch_dims", 0), k = indices.rank() ? indices.shape().back() : 0;
  if (batch < 0 || k <= 0 || batch + k > x.rank() || indices.rank() <= batch ||
      x.shape().take_front(batch) != indices.shape().take_front(batch))
    return c.fail("data, indices and batch_dims do not fit together");
  Val at = linear(c, indices, x.shape().slice(batch, k));
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

/// Places `updates` over rows of `x` at known positions: a lookup in both joined, by an index computed here.
Val overwrite(NodeContext &c, const Val &x, const Val &updates, const Val &at) {
  if (!x || !updates || !at) return {};
  if (!at.isConstant()) return c.e.fail("its indices must be known at compile time");
  int64_t rows = x.dim(0);
  nn::Tensor source(mlir::RankedTensorType::get({rows}, c.e.i64()));
  auto from = source.data<int64_t>();
  std::iota(from.begin(), from.end(), 0);
  for (int64_t i = 0; i < at.constant->size(); ++i) {
    int64_t row = int64_t(at.constant->at(i));
    if (row < 0 || row >= rows) return c.e.fail("index " + llvm::Twine(row) + " is out of range");
    from[row] = rows + i;
  }
  return rowsAt(c, c.e.concat({x, updates}, 0), Val(std::move(source)));
}

Vals scatterNd(NodeContext &c) {
  Val x = c.in(0), indices = c.in(1), updates = c.in(2);
  if (!x || !indices || !updates) return {};
  if (c.string("reduction", "none") != "none") return c.fail("reduction='" + c.string("reduction", "") + "' is not supported");
  int64_t k = indices.rank() ? indices.shape().back() : 0;
  if (k <= 0 || k > x.rank() ||
      updates.type().getNumElements() != *elementsOf(indices.shape().drop_back()) * *elementsOf(x.shape().drop_front(k)))
    return c.fail("data, indices and updates do not fit together");
  Ints flat{*elementsOf(x.shape().take_front(k))}, rows{*elementsOf(indices.shape().drop_back())};
  flat.append(x.shape().begin() + k, x.shape().end());
  rows.append(x.shape().begin() + k, x.shape().end());
  Val at = linear(c, indices, x.shape().take_front(k));
  return {c.e.reshape(overwrite(c, c.e.reshape(x, flat), c.e.reshape(updates, rows), at), x.shape())};
}

Vals scatterElements(NodeContext &c) {
  Val x = c.in(0), indices = c.in(1), updates = c.in(2);
  if (!x || !indices || !updates) return {};
  if (c.string("reduction", "none") != "none") return c.fail("reduction='" + c.string("reduction", "") + "' is not supported");
  if (x.rank() == 0 || x.rank() != indices.rank() || indices.shape() != updates.shape())
    return c.fail("data, indices and updates do not fit together");
  int64_t axis = c.dimension(c.integer("axis", 0), x.rank());
  indices = axis < 0 ? Val() : c.e.convert(c.importer.checkedIndices(indices, x.dim(axis), c.e), c.e.i64());
  Val at;
  for (int64_t d = 0; indices && d < x.rank(); ++d) {
    int64_t stride = *elementsOf(x.shape().drop_front(d + 1));
    if (indices.dim(d) > x.dim(d) && d != axis) return c.fail("indices are longer than data along dimension " + llvm::Twine(d));
    Val place = d == axis ? indices : c.e.iota(indices.shape(), d, c.e.i64());
    place = c.e.mul(place, c.e.scalar(double(stride), c.e.i64()));
    at = d ? c.e.add(at, place) : place;
  }
  Ints flat{x.type().getNumElements()}, rows{updates.type().getNumElements()};
  return {c.e.reshape(overwrite(c, c.e.reshape(x, flat), c.e.reshape(updates, rows), at), x.shape())};
}

Vals cumSum(NodeContext &c) {
  Val x = c.in(0);
  auto axes = c.known(1);
  if (!x || !axes || axes->size() != 1) return c.fail("its axis is no single number");
  int64_t axis = c.dimension(int64_t(axes->at(0)), x.rank());
  if (axis < 0) return {};
  Ints perm = upTo(x.rank());
  std::swap(perm[axis], perm.back());
  Val y = c.e.cumsum(c.e.transpose(x, perm), c.integer("exclusive", 0), c.integer("reverse", 0));
  return {c.e.transpose(y, perm)};
}

/// The position of the extremum: the first (or last) place that equals it.
template <nn::ReductionKind kind> Vals argExtremum(NodeContext &c) {
  Val x = c.in(0);
  int64_t axis = x ? c.dimension(c.integer("axis", 0), x.rank()) : -1;
  if (axis < 0) return {};
  Ints kept(x.shape().begin(), x.shape().end()), along(x.rank(), 1);
  kept[axis] = 1;
  along[axis] = x.dim(axis);
  bool last = c.integer("select_last_index", 0);
  Val hit = c.e.compare(nn::Predicate::eq, x, c.e.reshape(c.e.reduce(kind, x, {axis}), kept));
  Val miss = c.e.scalar(last ? -1 : double(x.dim(axis)), c.e.i64());
  Val place = c.e.select(hit, c.e.iota(along, axis, c.e.i64()), miss);
  Val r = c.e.reduce(last ? nn::ReductionKind::max : nn::ReductionKind::min, place, {axis});
  return {c.integer("keepdims", 1) ? c.e.reshape(r, kept) : r};
}

/// Of data (the router of a mixture of experts): one extremum after another, each taken out before the next is looked for.
/// The values are read by place, so that each gradient goes to one element.
Vals selectTop(NodeContext &c, const Val &x, int64_t k, bool largest) {
  int64_t last = x.rank() - 1, n = x.dim(last);
  auto kind = largest ? nn::ReductionKind::max : nn::ReductionKind::min;
  Ints kept(x.shape().begin(), x.shape().end()), along(x.rank(), 1);
  kept[last] = 1, along[last] = n;
  Val index = c.e.iota(along, last, c.e.i64()), rest = x, free = c.e.full(x.shape(), 1, c.e.i1());
  Val none = c.e.scalar(largest ? -HUGE_VAL : HUGE_VAL, x.element());
  Vals values, places;
  for (int64_t i = 0; i < k && !c.e.failed(); ++i) {
    Val hit = c.e.compare(nn::Predicate::eq, rest, c.e.reshape(c.e.reduce(kind, rest, {last}), kept));
    Val place = c.e.select(c.e.binary<nn::AndOp>(hit, free), index, c.e.scalar(double(n - 1), c.e.i64())); // n - 1: where all are NaN
    place = c.e.reduce(nn::ReductionKind::min, place, {last});
    values.push_back(c.e.reshape(c.e.takeAlong(x, place), kept));
    places.push_back(c.e.reshape(place, kept));
    Val others = c.e.compare(nn::Predicate::ne, index, places.back());
    free = c.e.binary<nn::AndOp>(free, others);
    rest = c.e.select(others, rest, none);
  }
  return {c.e.concat(values, last), c.e.concat(places, last)};
}

/// Known tensors, masks and schedules, are sorted here; few elements of data can be selected.
Vals topK(NodeContext &c) {
  Val data = c.in(0);
  auto count = c.known(1);
  if (!data || !count) return {};
  if (count->size() != 1) return c.fail("its number of elements is no single number");
  int64_t rank = data.rank(), k = int64_t(count->at(0));
  if (rank == 0 || c.dimension(c.integer("axis", -1), rank) != rank - 1) return c.fail("it is supported along the last dimension only");
  int64_t n = data.shape().back();
  if (k < 0 || k > n) return c.fail("k is out of range");
  auto x = c.importer.known(data, c.e);
  if (!x && k >= 1 && k <= 32 && data.isFloat()) return selectTop(c, data, k, c.integer("largest", 1));
  if (!x)
    return c.fail("of data that depends on the model's inputs 1 to 32 floating-point elements can be selected, not " + llvm::Twine(k));
  int64_t rows = n ? x->size() / n : 0;
  Ints shape(x->shape().begin(), x->shape().end());
  shape.back() = k;
  nn::Tensor values(mlir::RankedTensorType::get(shape, x->elementType())), places(mlir::RankedTensorType::get(shape, c.e.i64()));
  bool largest = c.integer("largest", 1);
  std::vector<int64_t> order(n);
  for (int64_t r = 0; r < rows; ++r) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      double u = x->at(r * n + a), v = x->at(r * n + b);
      return largest ? u > v : u < v;
    });
    for (int64_t i = 0; i < k; ++i) {
      values.set(r * k + i, x->at(r * n + order[i]));
      places.set(r * k + i, double(order[i]));
    }
  }
  return {Val(std::move(values)), Val(std::move(places))};
}

Vals nonZero(NodeContext &c) {
  auto x = c.known(0);
  if (!x) return {};
  int64_t rank = std::max<int64_t>(1, x->type.getRank());
  std::vector<int64_t> hits;
  for (int64_t i = 0; i < x->size(); ++i)
    if (x->at(i) != 0) hits.push_back(i);
  int64_t n = int64_t(hits.size());
  nn::Tensor t(mlir::RankedTensorType::get({rank, n}, c.e.i64()));
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = hits[i];
    for (int64_t d = rank - 1; d >= 0; --d) {
      int64_t size = x->type.getRank() ? x->shape()[d] : 1;
      t.data<int64_t>()[d * n + i] = rest % size;
      rest /= size;
    }
  }
  return {Val(std::move(t))};
}

} // namespace

void registerIndexing(Registry &r) {
  r["Gather"] = {gather};
  r["GatherElements"] = {gatherElements, 11};
  r["GatherND"] = {gatherNd, 11};
  r["ScatterND"] = {scatterNd, 11};
  r["ScatterElements"] = {scatterElements, 11};
  r["CumSum"] = {cumSum, 11};
  r["ArgMax"] = {argExtremum<nn::ReductionKind::max>};
  r["ArgMin"] = {argExtremum<nn::ReductionKind::min>};
  r["TopK"] = {topK};
  r["NonZero"] = {nonZero};
}

} // namespace zero::onnx

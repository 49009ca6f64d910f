//===- scatter.cpp - updates put, or added, at indices ------------------------------------------===//
// Where the indices are known the result is one lookup. Where they are computed (a router's choice of experts) each
// place of the result finds the update that belongs to it, so that nothing depends on the order of writes: of several updates for
// one place the last counts, or their sum in the order of the updates.
#include "compiler/onnx/ops/indexing.h"
#include <cmath>
#include <numeric>

namespace zero::onnx {
namespace {

/// `updates` [batch, n, inner] for the rows of `data` [batch, rows, inner] named by `indices` [batch, n]; -1 names none.
struct Scatter {
  Val data, updates, indices;
  int64_t batch() const { return data.dim(0); }
  int64_t rows() const { return data.dim(1); }
  int64_t inner() const { return data.dim(2); }
  int64_t count() const { return indices.dim(1); }
  explicit operator bool() const { return data && updates && indices; }
};

/// The first of consecutive places along `axis`, where whole slices of the updates go to these; nothing where they go elsewhere.
std::optional<int64_t> firstOfRun(const nn::Tensor &indices, int64_t axis) {
  int64_t n = indices.shape()[axis], inner = *elementsOf(indices.shape().drop_front(axis + 1)),
          first = indices.size() ? indices.integer(0) : -1;
  for (int64_t i = 0; i < indices.size(); ++i)
    if (indices.integer(i) != first + i / inner % n) return std::nullopt;
  return first < 0 ? std::nullopt : std::optional(first);
}

/// Slices of `data` in whose places there are others.
Val replaceRun(NodeContext &c, const Val &data, const Val &updates, int64_t axis, int64_t first) {
  int64_t end = first + updates.dim(axis), size = data.dim(axis);
  if (end > size) return c.e.fail("index " + llvm::Twine(end - 1) + " is out of range");
  llvm::SmallVector<Val, 3> parts;
  if (first > 0) parts.push_back(c.e.sliceDim(data, axis, 0, first));
  parts.push_back(updates);
  if (end < size) parts.push_back(c.e.sliceDim(data, axis, end, size));
  return parts.size() == 1 ? updates : c.e.concat(parts, axis);
}

/// Updates over data of one batch at known rows: a lookup in both joined, by an index computed here.
Val overwriteKnown(NodeContext &c, const Scatter &s) {
  int64_t rows = s.rows();
  if (auto first = firstOfRun(*s.indices.constant, 1)) return replaceRun(c, s.data, s.updates, 1, *first);
  if (!c.e.affords({rows}, c.e.i64())) return {};
  nn::Tensor source(mlir::RankedTensorType::get({rows}, c.e.i64()));
  auto from = source.data<int64_t>();
  std::iota(from.begin(), from.end(), 0);
  for (int64_t i = 0; i < s.indices.constant->size(); ++i) {
    int64_t row = s.indices.constant->integer(i);
    if (row >= rows) return c.e.fail("index " + llvm::Twine(row) + " is out of range");
    if (row >= 0) from[row] = rows + i;
  }
  Val both = c.e.concat({c.e.reshape(s.data, {rows, s.inner()}), c.e.reshape(s.updates, {s.count(), s.inner()})}, 0);
  return rowsAt(c, both, Val(std::move(source)));
}

/// Whether `indices` name each row: [batch, rows, n] of booleans.
Val named(NodeContext &c, const Scatter &s) {
  Val place = c.e.iota({1, s.rows(), 1}, 1, c.e.i64());
  return c.e.compare(nn::Predicate::eq, c.e.reshape(s.indices, {s.batch(), 1, s.count()}), place);
}

Val overwrite(NodeContext &c, const Scatter &s) {
  int64_t b = s.batch(), rows = s.rows(), n = s.count();
  if (n == 1) return c.e.select(named(c, s), s.updates, s.data);
  Val last = c.e.select(named(c, s), c.e.iota({1, 1, n}, 2, c.e.i64()), c.e.scalar(-1, c.e.i64()));
  last = c.e.reduce(nn::ReductionKind::max, last, {2});
  Val zero = c.e.scalar(0, c.e.i64());
  Val hit = c.e.compare(nn::Predicate::ge, last, zero);
  Val at = c.e.binary<nn::MaxOp>(last, zero);
  if (b > 1) at = c.e.add(at, c.e.mul(c.e.iota({b, 1}, 0, c.e.i64()), c.e.scalar(double(n), c.e.i64())));
  Val chosen = c.e.gather(c.e.reshape(s.updates, {b * n, s.inner()}), at);
  return c.e.select(c.e.reshape(hit, {b, rows, 1}), chosen, s.data);
}

/// [batch, rows, n, inner]: the updates for each row, and `none` in place of those for others.
Val forEachRow(NodeContext &c, const Scatter &s, double none) {
  return c.e.select(c.e.reshape(named(c, s), {s.batch(), s.rows(), s.count(), 1}),
                    c.e.reshape(s.updates, {s.batch(), 1, s.count(), s.inner()}), c.e.scalar(none, s.updates.element()));
}

Val addTo(NodeContext &c, const Scatter &s) {
  int64_t b = s.batch(), rows = s.rows(), n = s.count();
  if (!s.data.isFloat()) // whole numbers: exact in any order
    return c.e.add(s.data, c.e.reduce(nn::ReductionKind::sum, forEachRow(c, s, 0), {2}));
  Val none = c.e.compare(nn::Predicate::lt, s.indices, c.e.scalar(0, c.e.i64()));
  Val at = c.e.binary<nn::MaxOp>(s.indices, c.e.scalar(0, c.e.i64()));
  if (b > 1) at = c.e.add(at, c.e.mul(c.e.iota({b, 1}, 0, c.e.i64()), c.e.scalar(double(rows), c.e.i64())));
  Val updates = c.e.select(c.e.reshape(none, {b, n, 1}), c.e.scalar(0, s.updates.element()), s.updates);
  Val sum = c.e.scatterAdd(c.e.reshape(at, {b * n}), c.e.reshape(updates, {b * n, s.inner()}), b * rows);
  return c.e.add(s.data, c.e.reshape(sum, {b, rows, s.inner()}));
}

/// scatter_reduce(reduce="mean"), which the newer exporter writes as if it put the updates.
bool isMean(NodeContext &c) {
  auto call = argumentsOf(c.node, "scatter_reduce.two");
  return call.size() > 4 && call[4] == "mean";
}

/// Whether what is there does not count in the mean: first zeros are put in its place, by a node of the same call.
bool counts(NodeContext &c) { return !c.node.call.contains("include_self: False"); }
bool clears(NodeContext &c) {
  return isMean(c) && !counts(c) && llvm::none_of(argumentNames(c.node), [&](StringRef argument) {
           return argument == c.node.inputs[2] || isNameOf(argument, c.node.inputs[2]);
         });
}

Val average(NodeContext &c, const Scatter &s) {
  if (!s.data.isFloat()) return c.e.fail("scatter_reduce(reduce='mean') of integers is not supported");
  mlir::Type element = s.data.element();
  Scatter ones{c.e.full({s.batch(), s.rows(), 1}, counts(c), element), c.e.full({s.batch(), s.count(), 1}, 1, element), s.indices};
  return c.e.div(addTo(c, s), c.e.binary<nn::MaxOp>(addTo(c, ones), c.e.scalar(1, element)));
}

Val multiply(NodeContext &c, const Scatter &s) {
  Val product = productAlong(c, forEachRow(c, s, 1), 2);
  return c.e.mul(s.data, c.e.reshape(product, s.data.shape()));
}

/// The largest, or the smallest, of what is there and the updates.
template <nn::ReductionKind kind, typename Op> Val extremum(NodeContext &c, const Scatter &s) {
  double far = kind == nn::ReductionKind::max ? -HUGE_VAL : HUGE_VAL;
  if (!s.data.isFloat()) far = std::copysign(std::ldexp(1.0, s.data.element().getIntOrFloatBitWidth() - 2), far); // no index is so large
  return c.e.binary<Op>(s.data, c.e.reduce(kind, forEachRow(c, s, far), {2}));
}

/// [batch, rows, inner] with the updates in place.
Val place(NodeContext &c, Scatter s) {
  if (!s) return {};
  s.indices = c.e.convert(s.indices, c.e.i64());
  if (s.count() == 0) return s.data;
  // What is scattered is data or a constant that an exporter folded, never a parameter.
  if (auto known = c.importer.known(s.updates, c.e)) s.updates = Val(*known);
  std::string reduction = c.string("reduction", "none");
  if (isMean(c) && !clears(c)) return average(c, s);
  if (reduction == "add") return addTo(c, s);
  if (s.data.isBool() && reduction != "none") return c.e.fail("reduction='" + reduction + "' of booleans is not supported");
  if (reduction == "mul") return multiply(c, s);
  if (reduction == "max") return extremum<nn::ReductionKind::max, nn::MaxOp>(c, s);
  if (reduction == "min") return extremum<nn::ReductionKind::min, nn::MinOp>(c, s);
  if (reduction != "none") return c.e.fail("reduction='" + reduction + "' is not known");
  if (s.batch() == 1 && s.indices.isConstant()) return overwriteKnown(c, s);
  return overwrite(c, s);
}

Vals scatterNd(NodeContext &c) {
  if (c.node.mask == Node::Mask::Put) return putByMask(c);
  Val x = c.in(0), indices = c.in(1), updates = c.in(2);
  if (!x || !indices || !updates) return {};
  int64_t k = indices.rank() ? indices.shape().back() : 0;
  if (k <= 0 || k > x.rank() ||
      updates.type().getNumElements() != *elementsOf(indices.shape().drop_back()) * *elementsOf(x.shape().drop_front(k)))
    return c.fail("data, indices and updates do not fit together");
  int64_t rows = *elementsOf(x.shape().take_front(k)), inner = *elementsOf(x.shape().drop_front(k));
  int64_t n = *elementsOf(indices.shape().drop_back());
  Val at = linearIndex(c, indices, x.shape().take_front(k));
  Scatter s{c.e.reshape(x, {1, rows, inner}), c.e.reshape(updates, {1, n, inner}), c.e.reshape(at, {1, n})};
  return {c.e.reshape(place(c, s), x.shape())};
}

Vals scatterElements(NodeContext &c) {
  Val x = c.in(0), indices = c.in(1), updates = c.in(2);
  if (!x || !indices || !updates) return {};
  if (x.rank() == 0 || x.rank() != indices.rank() || indices.shape() != updates.shape())
    return c.fail("data, indices and updates do not fit together");
  int64_t axis = c.dimension(c.integer("axis", 0), x.rank());
  if (axis < 0) return {};
  if (clears(c))
    if (auto zeros = c.importer.known(updates, c.e)) updates = Val(*zeros); // and no parameter
  indices = c.e.convert(c.importer.checkedIndices(indices, x.dim(axis), c.e), c.e.i64());
  // Rows of the data that have no updates get empty ones.
  Ints none(x.rank(), 0), missing(x.rank(), 0);
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != axis) missing[d] = x.dim(d) - indices.dim(d);
  for (int64_t d = 0; d < x.rank(); ++d)
    if (missing[d] < 0) return c.fail("indices are longer than data along dimension " + llvm::Twine(d));
  bool whole = indices && indices.isConstant() && llvm::all_of(missing, [](int64_t d) { return d == 0; });
  bool puts = c.string("reduction", "none") == "none" && (!isMean(c) || clears(c));
  if (whole && puts)
    if (auto first = firstOfRun(*indices.constant, axis)) return {replaceRun(c, x, updates, axis, *first)};
  indices = c.e.pad(indices, -1, none, missing);
  updates = c.e.pad(updates, 0, none, missing);
  Ints perm = upTo(x.rank());
  std::swap(perm[axis], perm.back());
  Val turned = c.e.transpose(x, perm);
  if (!turned || !indices || !updates) return {};
  int64_t rows = x.dim(axis), n = indices.dim(axis), batch = *elementsOf(turned.shape().drop_back());
  Val at = c.e.transpose(indices, perm), with = c.e.transpose(updates, perm);
  Scatter s{c.e.reshape(turned, {batch, rows, 1}), c.e.reshape(with, {batch, n, 1}), c.e.reshape(at, {batch, n})};
  if (at && at.isConstant() && batch > 1) { // one lookup in everything
    Val base = c.e.mul(c.e.iota({batch, 1}, 0, c.e.i64()), c.e.scalar(double(rows), c.e.i64()));
    Val hole = c.e.compare(nn::Predicate::lt, s.indices, c.e.scalar(0, c.e.i64()));
    Val flat = c.e.select(hole, c.e.scalar(-1, c.e.i64()), c.e.add(s.indices, base));
    s = {c.e.reshape(turned, {1, batch * rows, 1}), c.e.reshape(with, {1, batch * n, 1}), c.e.reshape(flat, {1, batch * n})};
  }
  return {c.e.transpose(c.e.reshape(place(c, s), turned.shape()), perm)};
}

} // namespace

void registerScatters(Registry &r) {
  r["ScatterND"] = {scatterNd, 11};
  r["ScatterElements"] = {scatterElements, 11};
}

} // namespace zero::onnx

//===- selection.cpp - extrema, sorting, elements that are not zero --------------------------------===//
#include "compiler/onnx/masked_rows.h"
#include "compiler/onnx/ops/indexing.h"
#include <cmath>
#include <numeric>

namespace zero::onnx {
namespace {

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

/// Of data, many: each element's place is the number of those before it, and each place is looked up from there.
Vals sortBy(NodeContext &c, const Val &x, int64_t k, bool largest) {
  int64_t n = x.shape().back(), rows = *elementsOf(x.shape().drop_back());
  mlir::Type i64 = c.e.i64();
  Val one = c.e.reshape(x, {rows, n, 1}), other = c.e.reshape(x, {rows, 1, n});
  Val before = c.e.compare(largest ? nn::Predicate::gt : nn::Predicate::lt, other, one);
  Val earlier = c.e.compare(nn::Predicate::lt, c.e.iota({1, 1, n}, 2, i64), c.e.iota({1, n, 1}, 1, i64));
  Val ties = c.e.binary<nn::AndOp>(c.e.compare(nn::Predicate::eq, other, one), earlier);
  Val rank = c.e.reduce(nn::ReductionKind::sum, c.e.convert(c.e.binary<nn::OrOp>(before, ties), i64), {2});
  Val here = c.e.compare(nn::Predicate::eq, c.e.reshape(rank, {rows, 1, n}), c.e.iota({1, k, 1}, 1, i64));
  Val place = c.e.select(here, c.e.iota({1, 1, n}, 2, i64), c.e.scalar(0, i64)); // 0: where NaN have taken a place
  place = c.e.reduce(nn::ReductionKind::max, place, {2});
  Val at = rows > 1 ? c.e.add(place, c.e.mul(c.e.iota({rows, 1}, 0, i64), c.e.scalar(double(n), i64))) : place;
  Val values = c.e.gather(c.e.reshape(x, {rows * n}), at);
  Ints shape(x.shape().begin(), x.shape().end());
  shape.back() = k;
  return {c.e.reshape(values, shape), c.e.reshape(place, shape)};
}

/// Tensors that are known, masks and schedules.
Vals sortKnown(const nn::Tensor &x, int64_t k, bool largest, mlir::Type i64) {
  int64_t n = x.shape().back(), rows = n ? x.size() / n : 0;
  Ints shape(x.shape().begin(), x.shape().end());
  shape.back() = k;
  nn::Tensor values(mlir::RankedTensorType::get(shape, x.elementType())), places(mlir::RankedTensorType::get(shape, i64));
  std::vector<int64_t> order(n);
  for (int64_t r = 0; r < rows; ++r) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      double u = x.at(r * n + a), v = x.at(r * n + b);
      if (std::isnan(u) || std::isnan(v)) return largest ? std::isnan(u) && !std::isnan(v) : std::isnan(v) && !std::isnan(u); // above all
      return largest ? u > v : u < v;
    });
    for (int64_t i = 0; i < k; ++i) {
      values.set(r * k + i, x.at(r * n + order[i]));
      places.set(r * k + i, double(order[i]));
    }
  }
  return {Val(std::move(values)), Val(std::move(places))};
}

/// Along the last dimension. Of data few elements are selected one by one, more by comparing all with all.
Vals topOfRows(NodeContext &c, const Val &x, int64_t k, bool largest) {
  if (!x) return {};
  int64_t n = x.shape().back();
  if (k < 0 || k > n) return c.fail("k is out of range");
  if (x.isConstant()) return sortKnown(*x.constant, k, largest, c.e.i64());
  if (k >= 1 && k <= 32 && x.isFloat()) return selectTop(c, x, k, largest);
  if (k >= 1 && n <= 8192) return sortBy(c, x, k, largest);
  return c.fail("up to 8192 elements that depend on the model's inputs can be sorted, not " + llvm::Twine(n));
}

} // namespace

Vals topAlong(NodeContext &c, const Val &x, int64_t axis, int64_t k, bool largest) {
  if (axis == x.rank() - 1) return topOfRows(c, x, k, largest);
  Ints swapped = upTo(x.rank());
  std::swap(swapped[axis], swapped.back());
  Vals top = topOfRows(c, c.e.transpose(x, swapped), k, largest);
  for (Val &v : top) v = c.e.transpose(v, swapped);
  return top;
}

namespace {

Vals topK(NodeContext &c) {
  Val x = c.in(0);
  auto count = c.known(1);
  if (!x || !count) return {};
  if (count->size() != 1) return c.fail("its number of elements is no single number");
  if (x.rank() == 0) return c.fail("a single number has no dimension to look along");
  int64_t axis = c.dimension(c.integer("axis", -1), x.rank()), k = count->integer(0);
  if (axis < 0) return {};
  return topAlong(c, x, axis, k, c.integer("largest", 1));
}

Vals nonZero(NodeContext &c) {
  Val input = c.in(0);
  auto x = input ? c.importer.known(input, c.e) : nullptr;
  if (!x) return {input ? allPlaces(c, input) : Val()};
  int64_t rank = std::max<int64_t>(1, x->type.getRank());
  std::vector<int64_t> hits;
  for (int64_t i = 0; i < x->size(); ++i)
    if (x->at(i) != 0) hits.push_back(i);
  int64_t n = int64_t(hits.size());
  if (!c.e.affords({rank, n}, c.e.i64())) return {};
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

void registerSelections(Registry &r) {
  r["ArgMax"] = {argExtremum<nn::ReductionKind::max>};
  r["ArgMin"] = {argExtremum<nn::ReductionKind::min>};
  r["TopK"] = {topK};
  r["NonZero"] = {nonZero};
}

} // namespace zero::onnx

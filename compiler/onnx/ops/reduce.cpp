//===- reduce.cpp - sums and extrema along axes, softmax -----------------------------------------===//
#include "compiler/onnx/ops/indexing.h"
#include "compiler/onnx/ops/norm.h"
#include "compiler/onnx/origin.h"
#include <cmath>

namespace zero::onnx {
namespace {

using K = nn::ReductionKind;

/// The reduced axes, sorted; nothing after a report.
std::optional<Ints> axesOf(NodeContext &c, const Val &x, int64_t since) {
  auto given = c.axesSince(since, "axes", 1);
  if (!x || c.e.failed()) return std::nullopt;
  if (!given || given->empty()) {
    if (c.integer("noop_with_empty_axes", 0)) return Ints{}; // what is done to each number still is
    return upTo(x.rank());
  }
  Ints axes;
  for (int64_t a : *given) {
    int64_t d = c.dimension(a, x.rank());
    if (d < 0) return std::nullopt;
    axes.push_back(d);
  }
  llvm::sort(axes);
  return axes;
}

/// Puts reduced dimensions back as 1 where keepdims asks for it (the default).
Val finish(NodeContext &c, const Val &reduced, const Val &x, const Ints &axes) {
  if (!reduced || !c.integer("keepdims", 1)) return reduced;
  Ints shape(x.shape().begin(), x.shape().end());
  for (int64_t a : axes) shape[a] = 1;
  return c.e.reshape(reduced, shape);
}

int64_t countOf(const Val &x, const Ints &axes) {
  int64_t n = 1;
  for (int64_t a : axes) n *= x.dim(a);
  return n;
}

Val like(NodeContext &c, double value, const Val &x) { return x ? c.e.scalar(value, x.element()) : Val(); }

/// Whether it is max(dim) or min(dim), which has the gradient of the first extremum, while that of amax() is shared.
bool takesFirst(const Node &node) { return !argumentsOf(node, "max.dim").empty() || !argumentsOf(node, "min.dim").empty(); }

/// How each operator prepares its input, reduces and finishes.
enum class Form { Plain, Mean, L1, L2, SumSquare, LogSum, LogSumExp };

template <K kind, Form form, int since> Vals reduce(NodeContext &c) {
  Val x = c.in(0);
  auto axes = axesOf(c, x, since);
  if (!axes) return {};
  Val r = x;
  if (form == Form::L1) r = c.e.unary<nn::AbsOp>(x);
  if (form == Form::L2 || form == Form::SumSquare) r = c.e.mul(x, x);
  if (form == Form::LogSumExp) {
    Ints shape(x.shape().begin(), x.shape().end());
    for (int64_t a : *axes) shape[a] = 1;
    Val top = c.e.reduce(K::max, x, *axes);
    Val infinite = c.e.compare(nn::Predicate::eq, c.e.unary<nn::AbsOp>(top), like(c, HUGE_VAL, x));
    top = c.e.select(infinite, like(c, 0, x), top); // of a row that is masked throughout the sum is 0, and no difference is left
    Val sum = c.e.reduce(K::sum, c.e.unary<nn::ExpOp>(c.e.sub(x, c.e.reshape(top, shape))), *axes);
    return {finish(c, c.e.add(top, c.e.unary<nn::LogOp>(sum)), x, *axes)};
  }
  if (form == Form::Plain && kind != K::sum && x.isFloat() && axes->size() == 1 && !c.importer.isQuiet() && takesFirst(c.node)) {
    Vals first = topAlong(c, x, axes->front(), 1, kind == K::max);
    if (c.e.failed()) return {};
    Ints without(x.shape().begin(), x.shape().end());
    without.erase(without.begin() + axes->front());
    return {finish(c, c.e.reshape(first[0], without), x, *axes)};
  }
  r = c.e.reduce(kind, r, *axes);
  if (form == Form::Mean) {
    int64_t n = countOf(x, *axes);
    r = x.isFloat() ? c.e.mul(r, like(c, 1.0 / double(n), r)) : c.e.div(r, like(c, double(n), r));
  }
  if (form == Form::L2) r = rootOfSquares(c, r);
  if (form == Form::LogSum) r = c.e.unary<nn::LogOp>(r);
  return {finish(c, r, x, *axes)};
}

} // namespace

Val productAlong(NodeContext &c, Val x, int64_t axis) {
  Ints none(x.rank(), 0), one(x.rank(), 0);
  one[axis] = 1;
  if (x.dim(axis) == 0) return c.e.pad(x, 1, none, one);
  for (int64_t n = x.dim(axis), half; x && n > 1; n = half) {
    half = (n + 1) / 2;
    Val rest = c.e.sliceDim(x, axis, half, n);
    x = c.e.mul(c.e.sliceDim(x, axis, 0, half), n % 2 ? c.e.pad(rest, 1, none, one) : rest);
  }
  return x;
}

namespace {

Vals reduceProd(NodeContext &c) {
  Val x = c.in(0);
  auto axes = axesOf(c, x, 18);
  if (!axes) return {};
  Val r = x;
  Ints shape;
  for (int64_t d = 0; d < x.rank() && r; ++d)
    if (llvm::is_contained(*axes, d))
      r = productAlong(c, r, d);
    else
      shape.push_back(x.dim(d));
  return {finish(c, c.e.reshape(r, shape), x, *axes)};
}

Vals cumSum(NodeContext &c) {
  Val x = c.in(0);
  auto axes = c.known(1);
  if (!x || !axes || axes->size() != 1) return c.fail("its axis is no single number");
  int64_t axis = c.dimension(axes->integer(0), x.rank());
  if (axis < 0) return {};
  Ints perm = upTo(x.rank());
  std::swap(perm[axis], perm.back());
  Val y = c.e.cumsum(c.e.transpose(x, perm), c.integer("exclusive", 0), c.integer("reverse", 0));
  return {c.e.transpose(y, perm)};
}

/// Runs `body` with the softmax dimension last; before opset 13 everything from `axis` on is that dimension.
template <typename Body> Vals overAxis(NodeContext &c, Body body) {
  Val x = c.in(0);
  if (!x) return {};
  int64_t axis = c.dimension(c.integer("axis", c.opset < 13 ? 1 : -1), x.rank());
  if (axis < 0) return {};
  if (axis == x.rank() - 1) return {body(x)};
  if (c.opset < 13) {
    Ints flat{*elementsOf(x.shape().take_front(axis)), *elementsOf(x.shape().drop_front(axis))};
    return {c.e.reshape(body(c.e.reshape(x, flat)), x.shape())};
  }
  Ints perm = upTo(x.rank());
  std::swap(perm[axis], perm.back());
  return {c.e.transpose(body(c.e.transpose(x, perm)), perm)};
}

Vals softmax(NodeContext &c) {
  return overAxis(c, [&](const Val &x) { return c.e.softmax(x); });
}

Vals logSoftmax(NodeContext &c) {
  return overAxis(c, [&](const Val &x) -> Val {
    Val r = c.e.logSoftmax(x);
    c.importer.noteLogSoftmax(r, x);
    return r;
  });
}

} // namespace

void registerReductions(Registry &r) {
  r["ReduceSum"] = {reduce<K::sum, Form::Plain, 13>};
  r["ReduceMean"] = {reduce<K::sum, Form::Mean, 18>};
  r["ReduceMax"] = {reduce<K::max, Form::Plain, 18>};
  r["ReduceMin"] = {reduce<K::min, Form::Plain, 18>};
  r["ReduceL1"] = {reduce<K::sum, Form::L1, 18>};
  r["ReduceL2"] = {reduce<K::sum, Form::L2, 18>};
  r["ReduceSumSquare"] = {reduce<K::sum, Form::SumSquare, 18>};
  r["ReduceLogSum"] = {reduce<K::sum, Form::LogSum, 18>};
  r["ReduceLogSumExp"] = {reduce<K::sum, Form::LogSumExp, 18>};
  r["ReduceProd"] = {reduceProd};
  r["CumSum"] = {cumSum, 11};
  r["Softmax"] = {softmax};
  r["LogSoftmax"] = {logSoftmax};
}

} // namespace zero::onnx

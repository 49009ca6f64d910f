//===- arithmetic.h - what handlers of formulas share -------------------------------------------===//
#pragma once
#include "compiler/onnx/importer.h"

namespace zero::onnx {

/// `value` in the type of x.
inline Val like(NodeContext &c, double value, const Val &x) { return x ? c.e.scalar(value, x.element()) : Val(); }

/// condition(x ? 0) ? a : b
inline Val choose(NodeContext &c, nn::Predicate predicate, const Val &x, const Val &a, const Val &b) {
  return c.e.select(c.e.compare(predicate, x, like(c, 0, x)), a, b);
}

/// Whether it is torch.clamp(), which the newer exporter says.
inline bool isClamp(const Node &node) { return node.call.contains("=torch.ops.aten.clamp"); }

/// `bound` where x is beyond it, x elsewhere, which has the gradient there.
template <nn::Predicate beyond> Val within(NodeContext &c, const Val &x, const Val &bound) {
  return c.e.select(c.e.compare(beyond, x, bound), bound, x);
}

/// log(1 + e^x).
Val softplus(NodeContext &c, const Val &x);

/// The nearest whole number; halves go to the even one.
Val rounded(NodeContext &c, const Val &x);

/// Operations the dialect has for floats only.
template <typename Op> Vals floatUnary(NodeContext &c) {
  Val x = c.in(0);
  if (x && !x.isFloat()) return c.fail("it is supported for floats only");
  return {c.e.unary<Op>(x)};
}

/// A function of one number that exporters fold for a constant (`Operator::curve`).
inline Operator curve(Handler handler, int64_t since = 1) { return {handler, since, /*sequences=*/false, /*curve=*/true}; }

} // namespace zero::onnx

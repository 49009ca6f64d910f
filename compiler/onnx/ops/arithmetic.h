//===- arithmetic.h - what handlers of formulas share -------------------------------------------===//
#pragma once
#include "compiler/onnx/importer.h"
#include <type_traits>

namespace zero::onnx {

/// `value` in the type of x.
inline Val like(NodeContext &c, double value, const Val &x) { return x ? c.e.scalar(value, x.element()) : Val(); }

/// condition(x ? 0) ? a : b
inline Val choose(NodeContext &c, nn::Predicate predicate, const Val &x, const Val &a, const Val &b) {
  return c.e.select(c.e.compare(predicate, x, like(c, 0, x)), a, b);
}

/// Whether it is torch.clamp(), which the newer exporter says.
inline bool isClamp(const Node &node) { return node.call.contains("=torch.ops.aten.clamp"); }

/// `bound` where the predicate holds of x and it, x elsewhere, which has the gradient there.
template <nn::Predicate beyond> Val within(NodeContext &c, const Val &x, const Val &bound) {
  return c.e.select(c.e.compare(beyond, x, bound), bound, x);
}

/// max(x, bound), or min(x, bound), of a node that holds x within known bounds. On a bound clamp() of PyTorch before 2.15 has the gradient
/// of x, and everything else has none; which call it was only the newer exporter says. What meets what is seen without this.
template <typename Op> Val bounded(NodeContext &c, const Val &x, const Val &bound) {
  using P = nn::Predicate;
  constexpr bool isMax = std::is_same_v<Op, nn::MaxOp>;
  bool strict = c.importer.clampsStrictly(), told = strict || !c.node.call.empty();
  if (!x || !x.isFloat() || c.importer.isQuiet() || !told) return c.e.binary<Op>(x, bound);
  if (strict || !isClamp(c.node)) return within<(isMax ? P::le : P::ge)>(c, x, bound);
  return within<(isMax ? P::lt : P::gt)>(c, x, bound);
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

//===- trigonometry.cpp - circular and hyperbolic functions and their inverses --------------------===//
// What the dialect does not name is a formula of what it has, in a form in which nothing cancels near zero.
#include "compiler/onnx/ops/arithmetic.h"

namespace zero::onnx {
namespace {

Val root(NodeContext &c, const Val &x) { return c.e.unary<nn::SqrtOp>(x); }
Val lessOne(NodeContext &c, const Val &x) { return c.e.sub(x, like(c, 1, x)); }
Val oneLess(NodeContext &c, const Val &x) { return c.e.sub(like(c, 1, x), x); }
Val oneMore(NodeContext &c, const Val &x) { return c.e.add(x, like(c, 1, x)); }
/// sqrt(1 - x^2).
Val circle(NodeContext &c, const Val &x) { return root(c, c.e.mul(oneLess(c, x), oneMore(c, x))); }

Val tan(NodeContext &c, const Val &x) { return c.e.div(c.e.unary<nn::SinOp>(x), c.e.unary<nn::CosOp>(x)); }
/// By half of the angle: x / (1 + sqrt(1 - x^2)) is its tangent, and so is sqrt(1 - x) / sqrt(1 + x) of the other.
Val asin(NodeContext &c, const Val &x) { return c.e.mul(c.e.unary<nn::AtanOp>(c.e.div(x, oneMore(c, circle(c, x)))), like(c, 2, x)); }
Val acos(NodeContext &c, const Val &x) {
  return c.e.mul(c.e.unary<nn::AtanOp>(c.e.div(root(c, oneLess(c, x)), root(c, oneMore(c, x)))), like(c, 2, x));
}
Val cosh(NodeContext &c, const Val &x) {
  Val sum = c.e.add(c.e.unary<nn::ExpOp>(x), c.e.unary<nn::ExpOp>(c.e.unary<nn::NegOp>(x)));
  return c.e.mul(sum, like(c, 0.5, x));
}
Val sinh(NodeContext &c, const Val &x) { return c.e.mul(c.e.unary<nn::TanhOp>(x), cosh(c, x)); }
Val acosh(NodeContext &c, const Val &x) { return c.e.unary<nn::AsinhOp>(c.e.mul(root(c, lessOne(c, x)), root(c, oneMore(c, x)))); }
Val atanh(NodeContext &c, const Val &x) { return c.e.unary<nn::AsinhOp>(c.e.div(x, circle(c, x))); }

template <Val (*formula)(NodeContext &, const Val &)> Vals ofFloat(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  if (!x.isFloat()) return c.fail("it is supported for floats only");
  return {formula(c, x)};
}

} // namespace

void registerTrigonometry(Registry &r) {
  r["Sin"] = curve(floatUnary<nn::SinOp>);
  r["Cos"] = curve(floatUnary<nn::CosOp>);
  r["Tan"] = curve(ofFloat<tan>, 7);
  r["Asin"] = curve(ofFloat<asin>, 7);
  r["Acos"] = curve(ofFloat<acos>, 7);
  r["Atan"] = curve(floatUnary<nn::AtanOp>, 7);
  r["Sinh"] = curve(ofFloat<sinh>, 9);
  r["Cosh"] = curve(ofFloat<cosh>, 9);
  r["Asinh"] = curve(floatUnary<nn::AsinhOp>, 9);
  r["Acosh"] = curve(ofFloat<acosh>, 9);
  r["Atanh"] = curve(ofFloat<atanh>, 9);
}

} // namespace zero::onnx

//===- elementwise.cpp - comparisons, activations, simple arithmetic -----------------------===//
#include "compiler/onnx/ops/arithmetic.h"
#include "compiler/onnx/origin.h"
#include <cmath>

namespace zero::onnx {
namespace {

using P = nn::Predicate;

template <typename Op> Vals unary(NodeContext &c) {
  Val x = c.in(0);
  return {c.e.unary<Op>(x)};
}

template <typename Op> Vals binary(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  return {c.e.binary<Op>(x, y)};
}

template <P predicate> Vals comparison(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  if (x && y && x.isBool() && y.isBool()) {
    Val differ = c.e.binary<nn::XorOp>(x, y);
    if (predicate == P::ne) return {differ};
    if (predicate == P::eq) return {c.e.unary<nn::NotOp>(differ)};
  }
  return {c.e.compare(predicate, x, y)};
}

Vals reciprocal(NodeContext &c) {
  Val x = c.in(0);
  return {c.e.div(like(c, 1, x), x)};
}

Val ceil(NodeContext &c, const Val &x) { return c.e.unary<nn::NegOp>(c.e.unary<nn::FloorOp>(c.e.unary<nn::NegOp>(x))); }
Vals ceilOp(NodeContext &c) { return {ceil(c, c.in(0))}; }

} // namespace

Val rounded(NodeContext &c, const Val &x) {
  Val up = c.e.add(x, like(c, 0.5, x)), r = c.e.unary<nn::FloorOp>(up);
  Val half = c.e.mul(r, like(c, 0.5, r));
  Val odd = c.e.compare(P::ne, half, c.e.unary<nn::FloorOp>(half));
  Val tie = c.e.compare(P::eq, up, r);
  Val down = c.e.unary<nn::FloorOp>(x), whole = c.e.compare(P::eq, down, x); // of large ones the sum with 1/2 is another
  return c.e.select(whole, down, c.e.select(c.e.binary<nn::AndOp>(odd, tie), c.e.sub(r, like(c, 1, r)), r));
}

namespace {

Vals round(NodeContext &c) { return {rounded(c, c.in(0))}; }

Vals sign(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  Val one = like(c, 1, x), zero = like(c, 0, x);
  return {choose(c, P::gt, x, one, choose(c, P::lt, x, like(c, -1, x), zero))};
}

// What has a corner at 0 is written as a choice that takes the side whose slope PyTorch's gradient has there: a parameter that begins at 0
// would otherwise stay.

/// x where positive, 0 elsewhere; written as a choice so that the gradient at 0 is 0 and NaN stays NaN.
Val relu(NodeContext &c, const Val &x) { return choose(c, P::le, x, like(c, 0, x), x); }
Vals reluOp(NodeContext &c) { return {relu(c, c.in(0))}; }

Vals leakyRelu(NodeContext &c) {
  Val x = c.in(0);
  return {choose(c, P::gt, x, x, c.e.mul(x, like(c, c.real("alpha", 0.01), x)))};
}

Vals prelu(NodeContext &c) {
  Val x = c.in(0), slope = c.in(1);
  return {choose(c, P::gt, x, x, c.e.mul(x, slope))};
}

/// gamma * (x > 0 ? x : alpha * (e^x - 1))
Val expUnit(NodeContext &c, const Val &x, double alpha, double gamma) {
  Val below = choose(c, P::gt, x, like(c, 0, x), x); // e^x stays finite where it is not chosen
  Val curve = c.e.mul(c.e.sub(c.e.unary<nn::ExpOp>(below), like(c, 1, x)), like(c, alpha, x));
  Val r = choose(c, P::gt, x, x, curve);
  return gamma == 1 ? r : c.e.mul(r, like(c, gamma, r));
}
Vals elu(NodeContext &c) { return {expUnit(c, c.in(0), c.real("alpha", 1), 1)}; }
Vals selu(NodeContext &c) {
  return {expUnit(c, c.in(0), c.real("alpha", 1.67326319217681884765625), c.real("gamma", 1.05070102214813232421875))};
}

/// max(0, x) + min(0, alpha * (e^(x / alpha) - 1))
Vals celu(NodeContext &c) {
  double alpha = c.real("alpha", 1);
  Val x = c.in(0);
  return {choose(c, P::gt, x, x, expUnit(c, c.e.mul(x, like(c, 1 / alpha, x)), alpha, 1))};
}

Vals thresholdedRelu(NodeContext &c) {
  Val x = c.in(0);
  return {c.e.select(c.e.compare(P::gt, x, like(c, c.real("alpha", 1), x)), x, like(c, 0, x))};
}

/// Towards zero by `bias`, and zero within `lambd` of it.
Vals shrink(NodeContext &c) {
  Val x = c.in(0);
  double bias = c.real("bias", 0), reach = c.real("lambd", 0.5);
  Val above = c.e.select(c.e.compare(P::gt, x, like(c, reach, x)), c.e.sub(x, like(c, bias, x)), like(c, 0, x));
  return {c.e.select(c.e.compare(P::lt, x, like(c, -reach, x)), c.e.add(x, like(c, bias, x)), above)};
}

} // namespace

// max(x, 0) + log(1 + e^-|x|), where both sides of 0 are chosen alike: the slope is 1/2 there.
Val softplus(NodeContext &c, const Val &x) {
  Val above = choose(c, P::lt, x, like(c, 0, x), x), below = choose(c, P::lt, x, x, c.e.unary<nn::NegOp>(x));
  return c.e.add(above, c.e.unary<nn::Log1pOp>(c.e.unary<nn::ExpOp>(below)));
}

namespace {

Vals softplusOp(NodeContext &c) { return {softplus(c, c.in(0))}; }
Vals mish(NodeContext &c) { return {c.e.mul(c.in(0), c.e.unary<nn::TanhOp>(softplus(c, c.in(0))))}; }
Vals softsign(NodeContext &c) {
  Val x = c.in(0);
  return {c.e.div(x, c.e.add(c.e.unary<nn::AbsOp>(x), like(c, 1, x)))};
}

Val hardSigmoid(NodeContext &c, const Val &x, double alpha, double beta) {
  Val line = c.e.add(c.e.mul(x, like(c, alpha, x)), like(c, beta, x));
  return within<P::ge>(c, within<P::le>(c, line, like(c, 0, x)), like(c, 1, x));
}
Vals hardSigmoidOp(NodeContext &c) { return {hardSigmoid(c, c.in(0), c.real("alpha", 0.2), c.real("beta", 0.5))}; }
Vals hardSwish(NodeContext &c) { return {c.e.mul(c.in(0), hardSigmoid(c, c.in(0), 1.0 / 6, 0.5))}; }

Vals swish(NodeContext &c) {
  double alpha = c.real("alpha", 1);
  Val x = c.in(0);
  if (alpha == 1) return {c.e.unary<nn::SiluOp>(x)};
  return {c.e.mul(x, c.e.unary<nn::SigmoidOp>(c.e.mul(x, like(c, alpha, x))))};
}

Vals gelu(NodeContext &c) {
  std::string how = c.string("approximate", "none");
  if (how != "none" && how != "tanh") return c.fail("approximate='" + how + "' is not known");
  return {c.e.gelu(how == "tanh" ? nn::GeluKind::tanh : nn::GeluKind::erf, c.in(0))};
}

Vals where(NodeContext &c) {
  Val condition = c.in(0), x = c.in(1), y = c.in(2);
  return {c.e.select(condition, x, y)};
}

Vals isNan(NodeContext &c) { return {c.e.isNan(c.in(0))}; }

Vals isInf(NodeContext &c) {
  Val x = c.in(0);
  bool up = c.integer("detect_positive", 1), down = c.integer("detect_negative", 1);
  if (!up && !down) return c.fail("detect_positive and detect_negative are both 0");
  Val probe = up && down ? c.e.unary<nn::AbsOp>(x) : x;
  return {c.e.compare(P::eq, probe, like(c, up ? HUGE_VAL : -HUGE_VAL, x))};
}

Vals clip(NodeContext &c) {
  Val x = c.in(0), low, high;
  if (c.opset < 11) {
    if (c.attribute("min")) low = like(c, c.real("min", 0), x);
    if (c.attribute("max")) high = like(c, c.real("max", 0), x);
  } else {
    low = c.optional(1);
    high = c.optional(2);
  }
  Val number = c.importer.numberBehind(x); // of a quantizer whose range is a part of its type's
  if (low) x = bounded<nn::MaxOp>(c, x, low);
  if (high) x = bounded<nn::MinOp>(c, x, high);
  if (number && low) number = within<P::lt>(c, number, c.e.convert(low, c.e.f32()));
  if (number && high) number = within<P::gt>(c, number, c.e.convert(high, c.e.f32()));
  if (number) c.importer.noteQuantized(x, number);
  return {x};
}

Vals mod(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  if (!x || !y) return {};
  bool truncate = c.integer("fmod", 0);
  if (!truncate && x.isFloat()) return c.fail("fmod = 0 is defined for integers only");
  if (!truncate) return {c.e.binary<nn::ModOp>(x, y)};
  Val q = c.e.div(x, y); // integers: towards zero already
  if (x.isFloat()) q = choose(c, P::lt, q, ceil(c, q), c.e.unary<nn::FloorOp>(q));
  return {c.e.sub(x, c.e.mul(q, y))};
}

Vals identity(NodeContext &c) {
  Val x = c.in(0);
  if (x && !x.sequence && x.isFloat() && isDetach(c.node)) return {c.e.unary<nn::DetachOp>(x)};
  return {x};
}

} // namespace

void registerElementwise(Registry &r) {
  r["Mul"] = {binary<nn::MulOp>};
  r["Div"] = {binary<nn::DivOp>};
  r["Mod"] = {mod};
  r["And"] = {binary<nn::AndOp>};
  r["Or"] = {binary<nn::OrOp>};
  r["Xor"] = {binary<nn::XorOp>};
  r["Not"] = {unary<nn::NotOp>};
  r["Neg"] = {unary<nn::NegOp>};
  r["Abs"] = {unary<nn::AbsOp>};
  r["Exp"] = curve(floatUnary<nn::ExpOp>);
  r["Tanh"] = curve(floatUnary<nn::TanhOp>);
  r["Erf"] = curve(floatUnary<nn::ErfOp>);
  r["Floor"] = {floatUnary<nn::FloorOp>};
  r["Sigmoid"] = curve(floatUnary<nn::SigmoidOp>);
  r["Ceil"] = {ceilOp};
  r["Round"] = {round, 11};
  r["Sign"] = {sign};
  r["Reciprocal"] = {reciprocal};
  r["Equal"] = {comparison<P::eq>};
  r["Less"] = {comparison<P::lt>};
  r["LessOrEqual"] = {comparison<P::le>, 12};
  r["Greater"] = {comparison<P::gt>};
  r["GreaterOrEqual"] = {comparison<P::ge>, 12};
  r["Where"] = {where};
  r["IsNaN"] = {isNan};
  r["IsInf"] = {isInf};
  r["Clip"] = {clip};
  r["Identity"] = {identity, 1, true};
  r["Relu"] = {reluOp};
  r["LeakyRelu"] = {leakyRelu};
  r["PRelu"] = {prelu};
  r["Elu"] = {elu};
  r["Selu"] = {selu};
  r["Celu"] = {celu, 12};
  r["ThresholdedRelu"] = {thresholdedRelu, 10};
  r["Shrink"] = {shrink, 9};
  r["Softplus"] = curve(softplusOp);
  r["Softsign"] = {softsign};
  r["Mish"] = {mish, 18};
  r["HardSigmoid"] = {hardSigmoidOp};
  r["HardSwish"] = {hardSwish, 14};
  r["Swish"] = {swish, 24};
  r["Gelu"] = {gelu, 20};
}

} // namespace zero::onnx

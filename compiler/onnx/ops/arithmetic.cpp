//===- arithmetic.cpp - sums, differences, extrema, powers, roots and logarithms -----------------------------------------===//
#include "compiler/onnx/ops/arithmetic.h"
#include "compiler/nn/build.h"
#include "compiler/onnx/ops/norm.h"
#include "compiler/onnx/origin.h"
#include <cmath>

namespace zero::onnx {
namespace {

using P = nn::Predicate;

Vals sub(NodeContext &c) {
  Val x = c.in(0), y = c.in(1), r = c.e.sub(x, y);
  if (readsDetached(c.node)) c.importer.noteDetached(r);
  return {r};
}

/// One value, or one parameter: each use of it is read by an operation of its own.
bool isSame(mlir::Value a, mlir::Value b) {
  auto first = a.getDefiningOp<nn::GetOp>(), second = b.getDefiningOp<nn::GetOp>();
  return a == b || (first && second && first.getParameter() == second.getParameter());
}

/// The difference that `sum` is of, if it is x - y and no call says that there was no detach().
nn::SubOp lessThan(NodeContext &c, const Val &sum, const Val &y) {
  auto difference = sum.value && y.value ? sum.value.getDefiningOp<nn::SubOp>() : nn::SubOp();
  bool maybe = c.node.call.empty() || readsDetached(c.node) || c.importer.isOfDetached(sum.value);
  return maybe && difference && isSame(difference.getRhs(), y.value) ? difference : nn::SubOp();
}

/// (x - y) + y is what ONNX has of a straight-through estimator, x - y.detach() + y or y + (x - y).detach(), which are x and have the
/// gradient of y. Without detach() hardly anybody would compute it, and the newer exporter's calls tell.
Vals add(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  if (!x || !y) return {};
  if (auto difference = lessThan(c, x, y); difference && y.isFloat())
    x = c.e.sub(Val(difference.getLhs()), c.e.unary<nn::DetachOp>(y));
  else if (lessThan(c, y, x) && x.isFloat())
    y = c.e.unary<nn::DetachOp>(y);
  return {c.e.add(x, y)};
}

/// Sum and its like: any number of operands.
template <typename Op> Vals variadic(NodeContext &c) {
  Val r = c.in(0);
  for (size_t i = 1; i < c.inputs.size(); ++i) r = c.e.binary<Op>(r, c.in(i));
  return {r};
}

/// Max, Min, with the gradient of torch.maximum and minimum: of equal numbers each has half. nn.max alone gives one of them all, which
/// pools ask for. The newer exporter writes clamp() with them as well, of which a known bound is a scalar, and binary cross-entropies with
/// max(log(p), -100). What meets what is seen without this.
template <typename Op> Vals extremum(NodeContext &c) {
  Val r = c.in(0);
  bool shares = !c.importer.isQuiet(), strict = c.importer.clampsStrictly();
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    Val x = r, y = c.in(i);
    if (shares && isClamp(c.node) && x && x.isFloat() && (!strict || y.isConstant())) {
      r = bounded<Op>(c, x, y);
      continue;
    }
    if (Val p = shares && y.isConstant() && std::is_same_v<Op, nn::MaxOp> ? c.importer.argumentOfLogarithm(x) : Val()) {
      Val none = c.e.compare(P::eq, p, like(c, 0, p)); // whose logarithm has no finite gradient
      r = c.e.select(none, y, within<P::le>(c, c.e.unary<nn::LogOp>(c.e.select(none, like(c, 1, p), p)), y));
      continue;
    }
    r = c.e.binary<Op>(x, y);
    if (!r || r.isConstant() || !r.isFloat() || !shares) continue;
    Val half = c.e.add(c.e.mul(x, like(c, 0.5, x)), c.e.mul(y, like(c, 0.5, y)));
    r = c.e.select(c.e.compare(P::eq, x, y), half, r);
  }
  return {r};
}

/// x of 1 + x, as exporters write the operand of PyTorch's log1p.
Val addedToOne(const Val &x) {
  auto add = x.value ? x.value.getDefiningOp<nn::AddOp>() : nn::AddOp();
  if (!add) return {};
  return nn::splatOf(add.getRhs()) == 1.0 ? Val(add.getLhs()) : nn::splatOf(add.getLhs()) == 1.0 ? Val(add.getRhs()) : Val();
}

/// What a value is the sigmoid of, or 1 less it (`rest`).
Val sigmoidIn(const Val &x, bool &rest) {
  auto of = [](mlir::Value v) { return v ? v.getDefiningOp<nn::SigmoidOp>() : nn::SigmoidOp(); };
  auto negated = [&](mlir::Value v) {
    return v.getDefiningOp<nn::NegOp>() ? of(v.getDefiningOp<nn::NegOp>().getInput()) : nn::SigmoidOp();
  };
  nn::SigmoidOp sigmoid = of(x.value);
  if (rest = !sigmoid; rest && x.value) {
    if (auto sub = x.value.getDefiningOp<nn::SubOp>(); sub && nn::splatOf(sub.getLhs()) == 1.0) sigmoid = of(sub.getRhs());
    if (Val added = addedToOne(x)) sigmoid = negated(added.value);
  }
  return sigmoid ? Val(sigmoid.getInput()) : Val();
}

/// The exponent of e^x, or of 2^x for base e.
Val exponentIn(NodeContext &c, mlir::Value v) {
  if (auto exp = v.getDefiningOp<nn::ExpOp>()) return exp.getInput();
  auto power = v.getDefiningOp<nn::PowOp>();
  if (!power || nn::splatOf(power.getLhs()) != 2.0) return {};
  Val x = power.getRhs();
  return c.e.mul(x, like(c, M_LN2, x));
}

/// log(e^x + e^y), as exporters write PyTorch's logaddexp, which is finite where these are not: the larger one and log(1 + e^-|x - y|).
Val logOfExponentials(NodeContext &c, const Val &x, const Val &y) {
  Val zero = like(c, 0, x), half = like(c, 0.5, x);
  Val equal = c.e.compare(P::eq, x, y); // each has half of the gradient, and of infinities there is no difference
  Val larger = c.e.select(equal, c.e.add(c.e.mul(x, half), c.e.mul(y, half)), c.e.binary<nn::MaxOp>(x, y));
  Val apart = c.e.select(equal, zero, c.e.unary<nn::AbsOp>(c.e.sub(x, y)));
  return c.e.add(larger, c.e.unary<nn::Log1pOp>(c.e.unary<nn::ExpOp>(c.e.unary<nn::NegOp>(apart))));
}

/// Of a sigmoid, -softplus(-x): where that is 0 or 1 in f32, its logarithm is none, and PyTorch's losses by logits are finite.
Vals log(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  if (!x.isFloat()) return c.fail("it is supported for floats only");
  bool rest = false, quiet = c.importer.isQuiet();
  auto sum = x.value && !quiet ? x.value.getDefiningOp<nn::AddOp>() : nn::AddOp();
  Val left = sum ? exponentIn(c, sum.getLhs()) : Val(), right = left ? exponentIn(c, sum.getRhs()) : Val();
  Val r;
  if (left && right)
    r = logOfExponentials(c, left, right);
  else if (Val z = quiet ? Val() : sigmoidIn(x, rest))
    r = c.e.unary<nn::NegOp>(softplus(c, rest ? z : c.e.unary<nn::NegOp>(z)));
  else if (Val added = quiet ? Val() : addedToOne(x))
    r = c.e.unary<nn::Log1pOp>(added);
  else
    r = c.e.unary<nn::LogOp>(x);
  c.importer.noteLogarithm(r, x);
  return {r};
}

/// Whether it is a mean or another multiple of the squares of what numbers differ from something.
bool isVariance(mlir::Value v) {
  while (mlir::Operation *op = v ? v.getDefiningOp() : nullptr) {
    if (mlir::isa<nn::ReshapeOp, nn::BroadcastOp>(op))
      v = op->getOperand(0);
    else if (mlir::isa<nn::MulOp, nn::DivOp>(op) && nn::splatOf(op->getOperand(1)))
      v = op->getOperand(0);
    else if (auto reduce = mlir::dyn_cast<nn::ReduceOp>(op)) {
      auto square = reduce.getInput().getDefiningOp<nn::MulOp>();
      return reduce.getKind() == nn::ReductionKind::sum && square && square.getLhs() == square.getRhs() &&
             square.getLhs().getDefiningOp<nn::SubOp>();
    } else
      return false;
  }
  return false;
}

/// The gradient of a standard deviation is zero where all numbers are the same, as in PyTorch, and that of a root is not a number there.
Vals sqrt(NodeContext &c) {
  Val x = c.in(0);
  if (x && x.isFloat() && !c.importer.isQuiet() && isVariance(x.value)) return {rootOfSquares(c, x)};
  return floatUnary<nn::SqrtOp>(c);
}

Vals mean(NodeContext &c) {
  Val r = variadic<nn::AddOp>(c)[0];
  return {c.e.mul(r, like(c, 1.0 / double(c.inputs.size()), r))};
}

/// x to the power of one number that is known, by squaring.
Val wholePower(NodeContext &c, Val x, int64_t power) {
  if (power == 0) return c.e.add(c.e.mul(x, like(c, 0, x)), like(c, 1, x));
  Val r;
  for (; power; power >>= 1) {
    if (power & 1) r = r ? c.e.mul(r, x) : x;
    if (power > 1) x = c.e.mul(x, x);
  }
  return r;
}

/// Integers to the power of integers, bit by bit, in their own type, where what overflows wraps as in PyTorch. Powers that only the run
/// knows are taken up to 63, of which larger ones keep whether they are odd: more fits 64 bits for 0, 1 and -1 alone. A negative one gives
/// the whole part of 1 / x^n.
Val wholePower(NodeContext &c, Val x, Val y) {
  Val zero = like(c, 0, x), one = like(c, 1, x), two = like(c, 2, x), negative = c.e.compare(P::lt, y, zero), base = x, r = one;
  int64_t most = y.isConstant() ? 1 : 63;
  if (y.isConstant())
    for (int64_t power : y.constant->integers()) most = std::max(most, power);
  else
    y = c.e.select(c.e.compare(P::gt, y, like(c, 63, y)), c.e.add(c.e.binary<nn::ModOp>(y, two), like(c, 62, y)), y);
  for (; most && !c.e.failed(); most >>= 1) {
    Val odd = c.e.compare(P::ne, c.e.binary<nn::ModOp>(y, two), zero);
    r = c.e.select(odd, c.e.mul(r, base), r);
    y = c.e.div(y, two), base = c.e.mul(base, base);
  }
  Val unit = c.e.compare(P::eq, c.e.mul(x, x), one);
  return c.e.select(c.e.binary<nn::AndOp>(negative, c.e.unary<nn::NotOp>(unit)), zero, r);
}

bool isWhole(const Val &y) {
  if (!y.isFloat() || !y.isConstant()) return !y.isFloat();
  for (int64_t i = 0; i < y.constant->size(); ++i)
    if (double power = y.constant->at(i); power != std::floor(power)) return false;
  return true;
}

/// Whether PyTorch's older exporter has written cdist() or pairwise_distance(), whose root of a sum of squared differences is its power 1 /
/// (2 + 1e-6).
bool isDistance(const Val &x, const Val &y) {
  if (!x.value || !y.isConstant() || !y.isFloat() || y.constant->size() != 1) return false;
  double power = y.constant->at(0);
  auto reduce = x.value.getDefiningOp<nn::ReduceOp>();
  if (!reduce || reduce.getKind() != nn::ReductionKind::sum || power == 0.5 || std::abs(power * (2 + 1e-6) - 1) > 1e-7) return false;
  auto square = reduce.getInput().getDefiningOp<nn::PowOp>();
  return square && nn::splatOf(square.getRhs()) == 2.0 && square.getLhs().getDefiningOp<nn::SubOp>();
}

Vals pow(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  if (!x || !y) return {};
  mlir::Type element = x.element();
  if (!x.isFloat() && isWhole(y)) {
    y = c.e.convert(y, element);
    bool one = y && y.isConstant() && y.constant->size() == 1 && y.rank() <= x.rank() && y.constant->integer(0) >= 0;
    return {one ? wholePower(c, x, y.constant->integer(0)) : wholePower(c, x, y)};
  }
  if (!c.importer.isQuiet() && isDistance(x, y)) return {rootOfSquares(c, x)}; // of a point from itself, which has no gradient in PyTorch
  Val r = c.e.binary<nn::PowOp>(c.e.convert(x, c.e.f32()), c.e.convert(y, c.e.f32()));
  return {c.e.convert(r, element)};
}

} // namespace

void registerArithmetic(Registry &r) {
  r["Add"] = {add};
  r["Sub"] = {sub};
  r["Pow"] = {pow};
  r["Log"] = curve(log);
  r["Sqrt"] = {sqrt};
  r["Max"] = {extremum<nn::MaxOp>};
  r["Min"] = {extremum<nn::MinOp>};
  r["Sum"] = {variadic<nn::AddOp>};
  r["Mean"] = {mean};
}

} // namespace zero::onnx

//===- functions.cpp - powers, exponentials, trigonometry and what is made of them --------------------===//
// Each function's formula, and its gradient right after it. What `Fn` does not have is a formula of what it has.
#include "compiler/nn/implement.h"
#include <numbers>

using namespace mlir;

namespace zero::nn {

Number PowOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Pow, x); }
/// p x^(p - 1) for x; for an exponent that is computed x^p log(x), and 0 where x is 0, as in PyTorch.
LogicalResult PowOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value slope, zero = b.like(getLhs(), 0);
  if (auto p = splatOf(getRhs())) {
    if (*p == 0)
      slope = zero; // also at x = 0, where 0 * x^-1 would be no number
    else if (*p == 1)
      slope = b.like(getLhs(), 1);
    else if (*p == 2)
      slope = b.mul(getLhs(), 2);
    else if (*p == 3)
      slope = b.mul(b.mul(getLhs(), getLhs()), 3);
    else
      slope = b.mul(builder.create<PowOp>(getLoc(), getLhs(), b.like(getLhs(), *p - 1)), *p);
  } else {
    Value less = b.sub(getRhs(), b.like(getRhs(), 1));
    slope = b.mul(builder.create<PowOp>(getLoc(), getLhs(), less), getRhs());
    slope = b.select(b.compare(Predicate::eq, getRhs(), zero), zero, slope);
  }
  out[0] = b.mul(d[0], slope);
  out[1] = zero;
  if (isConstant(getRhs())) return success();
  Value growth = b.mul(getResult(), b.log(getLhs()));
  out[1] = b.mul(d[0], b.select(b.compare(Predicate::eq, getLhs(), zero), zero, growth));
  return success();
}

Number SqrtOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Sqrt, x); }
LogicalResult SqrtOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.div(b.mul(d[0], 0.5), getResult());
  return success();
}

Number RsqrtOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Rsqrt, x); }
LogicalResult RsqrtOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value cube = b.mul(b.mul(getResult(), getResult()), getResult());
  out[0] = b.mul(d[0], b.mul(cube, -0.5));
  return success();
}

Number ExpOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Exp, x); }
LogicalResult ExpOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.mul(d[0], getResult());
  return success();
}

Number LogOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Log, x); }
LogicalResult LogOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.div(d[0], getInput());
  return success();
}

Number SigmoidOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Sigmoid, x); }
LogicalResult SigmoidOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value slope = b.mul(getResult(), b.sub(b.like(d[0], 1), getResult()));
  out[0] = b.mul(d[0], slope);
  return success();
}

Number TanhOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Tanh, x); }
LogicalResult TanhOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.mul(d[0], b.sub(b.like(d[0], 1), b.mul(getResult(), getResult())));
  return success();
}

Number ErfOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Erf, x); }
LogicalResult ErfOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value bell = b.exp(b.neg(b.mul(getInput(), getInput())));
  out[0] = b.mul(d[0], b.mul(bell, 2.0 * std::numbers::inv_sqrtpi));
  return success();
}

Number SinOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Sin, x); }
LogicalResult SinOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  out[0] = Build{builder, getLoc()}.mul(d[0], builder.create<CosOp>(getLoc(), getInput()));
  return success();
}

Number CosOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Cos, x); }
LogicalResult CosOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.neg(b.mul(d[0], builder.create<SinOp>(getLoc(), getInput())));
  return success();
}

/// log(1 + x). w = 1 + x is rounded: its logarithm is that of a number nearby, and log(1 + x) / x hardly changes on the way to it (Goldberg
/// 1991, theorem 4).
static Number log1p(ScalarBuilder &b, Number x) {
  Number one = b.constant(x, 1), w = b.add(one, x), grown = b.sub(w, one);
  Number ratio = b.select(b.apply(Fn::Eq, {w, x}), one, b.div(x, grown)); // of a large one, which may be infinite
  return b.select(b.apply(Fn::Eq, {grown, b.constant(x, 0)}), x, b.mul(b.log(w), ratio));
}

Number Log1pOp::compute(ScalarBuilder &b, Numbers x) { return log1p(b, x[0]); }
/// 1 / (1 + x).
LogicalResult Log1pOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.div(d[0], b.add(getInput(), 1));
  return success();
}

/// log(1 + u) of |x|, with u = |x| + x^2 / (1 + sqrt(x^2 + 1)), in which nothing cancels where x is small; of a large one it is log(2 |x|).
Number AsinhOp::compute(ScalarBuilder &b, Numbers x) {
  Number a = b.abs(x[0]), one = b.constant(a, 1), square = b.mul(a, a);
  Number u = b.add(a, b.div(square, b.add(one, b.sqrt(b.add(square, one)))));
  Number large = b.apply(Fn::Gt, {a, b.constant(a, 1e9)}); // its square may be infinite
  Number more = b.select(large, b.constant(a, std::numbers::ln2), b.constant(a, 0));
  Number y = b.add(log1p(b, b.select(large, b.sub(a, one), u)), more);
  return b.select(b.apply(Fn::Lt, {x[0], b.constant(a, 0)}), b.neg(y), y);
}
/// 1 / sqrt(x^2 + 1).
LogicalResult AsinhOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.mul(d[0], b.rsqrt(b.add(b.mul(getInput(), getInput()), 1)));
  return success();
}

/// The atan of Cephes: |x| above tan(3 pi / 8), or above 0.66, is turned by a half or a quarter of pi, and of what is left a quotient of
/// polynomials is the inverse tangent.
Number AtanOp::compute(ScalarBuilder &b, Numbers x) {
  Number a = b.abs(x[0]), one = b.constant(a, 1), zero = b.constant(a, 0);
  auto polynomial = [&](Number at, ArrayRef<double> coefficients) {
    Number sum = b.constant(at, coefficients[0]);
    for (double c : coefficients.drop_front()) sum = b.add(b.mul(sum, at), b.constant(at, c));
    return sum;
  };
  Number far = b.apply(Fn::Gt, {a, b.constant(a, 2.41421356237309504880)}), near = b.apply(Fn::Gt, {a, b.constant(a, 0.66)});
  Number t = b.select(far, b.neg(b.div(one, a)), b.select(near, b.div(b.sub(a, one), b.add(a, one)), a));
  Number turn = b.select(far, b.constant(a, std::numbers::pi / 2), b.select(near, b.constant(a, std::numbers::pi / 4), zero));
  Number z = b.mul(t, t);
  Number above = polynomial(z, {-8.750608600031904122785E-1, -1.615753718733365076637E1, -7.500855792314704667340E1,
                                -1.228866684490136173410E2, -6.485021904942025371773E1});
  Number below = polynomial(z, {1, 2.485846490142306297962E1, 1.650270098316988542046E2, 4.328810604912902668951E2,
                                4.853903996359136964868E2, 1.945506571482613964425E2});
  Number y = b.add(turn, b.add(b.mul(t, b.div(b.mul(z, above), below)), t));
  return b.select(b.apply(Fn::Lt, {x[0], zero}), b.neg(y), y);
}
/// 1 / (x^2 + 1).
LogicalResult AtanOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.div(d[0], b.add(b.mul(getInput(), getInput()), 1));
  return success();
}

Number FloorOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Floor, x); }
Number DetachOp::compute(ScalarBuilder &, Numbers x) { return x[0]; }

} // namespace zero::nn

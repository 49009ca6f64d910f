//===- elementwise.cpp - gradients of elementwise operations --------------------------------------===//
// Operands have equal shapes, so a rule never sums: nn.broadcast does that in its own rule. Integer and
// boolean operands have no gradient; rules that take them leave null.
#include "compiler/nn/build.h"
#include <cmath>
#include <numbers>

using namespace mlir;

namespace zero::nn {
using Gradients = SmallVectorImpl<Value>;

LogicalResult AddOp::differentiate(OpBuilder &, ValueRange d, Gradients &out) {
  out[0] = out[1] = d[0];
  return success();
}

LogicalResult SubOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = d[0];
  out[1] = Build{b, getLoc()}.neg(d[0]);
  return success();
}

LogicalResult MulOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.mul(d[0], getRhs());
  out[1] = b.mul(d[0], getLhs());
  return success();
}

/// d(x/y) = dy/y on the left and -(dy/y) * (x/y) on the right, so that neither needs y squared.
LogicalResult DivOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.div(d[0], getRhs());
  if (!isConstant(getRhs()))
    out[1] = b.neg(b.mul(out[0], getResult()));
  else
    out[1] = b.like(getRhs(), 0);
  return success();
}

LogicalResult PowOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  if (!isConstant(getRhs())) return emitOpError() << "has a gradient only where the exponent is known at compile time";
  Value slope;
  if (auto p = splatOf(getRhs())) {
    if (*p == 0)
      slope = b.like(getLhs(), 0); // also at x = 0, where 0 * x^-1 would be no number
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
  }
  out[0] = b.mul(d[0], slope);
  out[1] = b.like(getRhs(), 0);
  return success();
}

/// All of the gradient goes to one operand: to lhs where the operands are equal. Against a constant 0 (ReLU)
/// the comparison is strict, so that the gradient at 0 is 0 as in PyTorch.
static void routeExtremum(OpBuilder &builder, Operation *op, Predicate lhsWins, Predicate strictly, Value d, Gradients &out) {
  Build b{builder, op->getLoc()};
  Value lhs = op->getOperand(0), rhs = op->getOperand(1), zero = b.like(d, 0);
  Value taken = b.compare(splatOf(rhs) == 0.0 ? strictly : lhsWins, lhs, rhs);
  out[0] = b.select(taken, d, zero);
  out[1] = b.select(taken, zero, d);
}
LogicalResult MaxOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  routeExtremum(b, *this, Predicate::ge, Predicate::gt, d[0], out);
  return success();
}
LogicalResult MinOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  routeExtremum(b, *this, Predicate::le, Predicate::lt, d[0], out);
  return success();
}

LogicalResult NegOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.neg(d[0]);
  return success();
}

LogicalResult AbsOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value zero = b.like(d[0], 0);
  Value left = b.select(b.compare(Predicate::lt, getInput(), zero), b.neg(d[0]), zero);
  out[0] = b.select(b.compare(Predicate::gt, getInput(), zero), d[0], left);
  return success();
}

LogicalResult ExpOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.mul(d[0], getResult());
  return success();
}

LogicalResult LogOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.div(d[0], getInput());
  return success();
}

LogicalResult SqrtOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.div(b.mul(d[0], 0.5), getResult());
  return success();
}

LogicalResult RsqrtOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value cube = b.mul(b.mul(getResult(), getResult()), getResult());
  out[0] = b.mul(d[0], b.mul(cube, -0.5));
  return success();
}

LogicalResult TanhOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.mul(d[0], b.sub(b.like(d[0], 1), b.mul(getResult(), getResult())));
  return success();
}

LogicalResult ErfOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value bell = b.exp(b.neg(b.mul(getInput(), getInput())));
  out[0] = b.mul(d[0], b.mul(bell, 2.0 * std::numbers::inv_sqrtpi));
  return success();
}

LogicalResult SinOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  out[0] = Build{builder, getLoc()}.mul(d[0], builder.create<CosOp>(getLoc(), getInput()));
  return success();
}

LogicalResult CosOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.neg(b.mul(d[0], builder.create<SinOp>(getLoc(), getInput())));
  return success();
}

LogicalResult SigmoidOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value slope = b.mul(getResult(), b.sub(b.like(d[0], 1), getResult()));
  out[0] = b.mul(d[0], slope);
  return success();
}

LogicalResult SelectOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value zero = b.like(d[0], 0);
  out[1] = b.select(getCondition(), d[0], zero);
  out[2] = b.select(getCondition(), zero, d[0]);
  return success();
}

LogicalResult CastOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  if (isFloat(getInput())) out[0] = Build{b, getLoc()}.cast(d[0], elementOf(getInput()));
  return success();
}

} // namespace zero::nn

//===- arithmetic.cpp - arithmetic, comparisons, logic, choices and casts -----------------------------===//
// Each operation's formula, and its gradient right after it. Operands have equal shapes, so a rule never sums: nn.broadcast does that in
// its own rule. Integer and boolean operands have no gradient; rules that take them leave null.
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Number AddOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Add, x); }
LogicalResult AddOp::differentiate(OpBuilder &, ValueRange d, Gradients &out) {
  out[0] = out[1] = d[0];
  return success();
}

Number SubOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Sub, x); }
LogicalResult SubOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = d[0];
  out[1] = Build{b, getLoc()}.neg(d[0]);
  return success();
}

Number MulOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Mul, x); }
LogicalResult MulOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = b.mul(d[0], getRhs());
  out[1] = b.mul(d[0], getLhs());
  return success();
}

Number DivOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Div, x); }
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

Number ModOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Mod, x); }

/// All of the gradient goes to one operand: to lhs where the operands are equal. Against a constant 0 (ReLU)
/// the comparison is strict, so that the gradient at 0 is 0 as in PyTorch.
static void routeExtremum(OpBuilder &builder, Operation *op, Predicate lhsWins, Predicate strictly, Value d, Gradients &out) {
  Build b{builder, op->getLoc()};
  Value lhs = op->getOperand(0), rhs = op->getOperand(1), zero = b.like(d, 0);
  Value taken = b.compare(splatOf(rhs) == 0.0 ? strictly : lhsWins, lhs, rhs);
  out[0] = b.select(taken, d, zero);
  out[1] = b.select(taken, zero, d);
}

Number MaxOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Max, x); }
LogicalResult MaxOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  routeExtremum(b, *this, Predicate::ge, Predicate::gt, d[0], out);
  return success();
}

Number MinOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Min, x); }
LogicalResult MinOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  routeExtremum(b, *this, Predicate::le, Predicate::lt, d[0], out);
  return success();
}

Number NegOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Neg, x); }
LogicalResult NegOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.neg(d[0]);
  return success();
}

Number AbsOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Abs, x); }
LogicalResult AbsOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value zero = b.like(d[0], 0);
  Value left = b.select(b.compare(Predicate::lt, getInput(), zero), b.neg(d[0]), zero);
  out[0] = b.select(b.compare(Predicate::gt, getInput(), zero), d[0], left);
  return success();
}

//===----------------------------------------------------------------------===//
// Logic and comparisons: nothing of them has a gradient
//===----------------------------------------------------------------------===//

Number AndOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::And, x); }
Number OrOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Or, x); }
Number XorOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Xor, x); }
Number NotOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Not, x); }
Number BitAndOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::And, x); }
Number BitOrOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Or, x); }
Number BitXorOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Xor, x); }
Number ShiftLeftOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::ShiftLeft, x); }
Number ShiftRightOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::ShiftRight, x); }
Number IsNanOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::IsNan, x); }

Number CompareOp::compute(ScalarBuilder &b, Numbers x) {
  static_assert(int(Fn::Ge) - int(Fn::Eq) == int(Predicate::ge) - int(Predicate::eq), "in the order of Predicate");
  return b.apply(Fn(int(Fn::Eq) + int(getPredicate())), x);
}

//===----------------------------------------------------------------------===//
// Choices and casts
//===----------------------------------------------------------------------===//

Number SelectOp::compute(ScalarBuilder &b, Numbers x) { return b.apply(Fn::Select, x); }
LogicalResult SelectOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value zero = b.like(d[0], 0);
  out[1] = b.select(getCondition(), d[0], zero);
  out[2] = b.select(getCondition(), zero, d[0]);
  return success();
}

Number CastOp::compute(ScalarBuilder &b, Numbers x) {
  return elementOf(getInput()) == elementOf(getResult()) ? x[0] : b.convert(x[0], elementOf(getResult()));
}
OpFoldResult CastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }
LogicalResult CastOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  if (isFloat(getInput())) out[0] = Build{b, getLoc()}.cast(d[0], elementOf(getInput()));
  return success();
}

} // namespace zero::nn

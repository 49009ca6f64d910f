//===- patterns_arithmetic.cpp - identities of elementwise operations ---------------------------------===//
#include "compiler/nn/build.h"
#include "compiler/nn/patterns.h"
#include <cmath>

using namespace mlir;

namespace zero::nn {
namespace {

bool is(Value v, double number) {
  auto n = splatOf(v);
  return n && *n == number;
}

/// lhs or rhs, whichever is not the given number; null when neither is it.
Value otherThan(Operation *op, double number) {
  if (is(op->getOperand(1), number)) return op->getOperand(0);
  if (is(op->getOperand(0), number)) return op->getOperand(1);
  return {};
}

LogicalResult foldAdd(AddOp op, PatternRewriter &r) {
  if (Value x = otherThan(op, 0)) return r.replaceOp(op, x), success();
  if (auto neg = op.getRhs().getDefiningOp<NegOp>()) return r.replaceOpWithNewOp<SubOp>(op, op.getLhs(), neg.getInput()), success();
  if (auto neg = op.getLhs().getDefiningOp<NegOp>()) return r.replaceOpWithNewOp<SubOp>(op, op.getRhs(), neg.getInput()), success();
  return failure();
}

LogicalResult foldSub(SubOp op, PatternRewriter &r) {
  if (is(op.getRhs(), 0)) return r.replaceOp(op, op.getLhs()), success();
  if (is(op.getLhs(), 0)) return r.replaceOpWithNewOp<NegOp>(op, op.getRhs()), success();
  if (auto neg = op.getRhs().getDefiningOp<NegOp>()) return r.replaceOpWithNewOp<AddOp>(op, op.getLhs(), neg.getInput()), success();
  return failure();
}

/// x * c * d = x * (c d); the product of the constants is rounded once, in double.
LogicalResult foldMul(MulOp op, PatternRewriter &r) {
  if (Value x = otherThan(op, 1)) return r.replaceOp(op, x), success();
  if (is(op.getRhs(), -1) && isFloat(op)) return r.replaceOpWithNewOp<NegOp>(op, op.getLhs()), success();
  for (int side : {0, 1}) {
    auto c = splatOf(op->getOperand(1 - side));
    auto inner = op->getOperand(side).getDefiningOp<MulOp>();
    if (!c || !inner || !inner->hasOneUse() || !isFloat(op)) continue;
    for (int innerSide : {0, 1})
      if (auto d = splatOf(inner->getOperand(1 - innerSide))) {
        Value product = Build{r, op.getLoc()}.like(op, *c * *d);
        return r.replaceOpWithNewOp<MulOp>(op, inner->getOperand(innerSide), product), success();
      }
  }
  return failure();
}

LogicalResult foldDiv(DivOp op, PatternRewriter &r) {
  auto c = splatOf(op.getRhs());
  if (!c) return failure();
  if (*c == 1) return r.replaceOp(op, op.getLhs()), success();
  int exponent = 0; // division by a power of two is an exact product
  if (isFloat(op) && std::abs(std::frexp(*c, &exponent)) == 0.5 && std::abs(exponent) < 14)
    return r.replaceOpWithNewOp<MulOp>(op, op.getLhs(), Build{r, op.getLoc()}.like(op, 1 / *c)), success();
  return failure();
}

LogicalResult foldNeg(NegOp op, PatternRewriter &r) {
  if (auto inner = op.getInput().getDefiningOp<NegOp>()) return r.replaceOp(op, inner.getInput()), success();
  if (auto inner = op.getInput().getDefiningOp<SubOp>(); inner && inner->hasOneUse())
    return r.replaceOpWithNewOp<SubOp>(op, inner.getRhs(), inner.getLhs()), success();
  auto inner = op.getInput().getDefiningOp<MulOp>(); // -(x c) = x (-c)
  if (!inner || !inner->hasOneUse()) return failure();
  for (int side : {0, 1})
    if (auto c = splatOf(inner->getOperand(1 - side)))
      return r.replaceOpWithNewOp<MulOp>(op, inner->getOperand(side), Build{r, op.getLoc()}.like(op, -*c)), success();
  return failure();
}

LogicalResult foldPow(PowOp op, PatternRewriter &r) {
  auto p = splatOf(op.getRhs());
  if (!p) return failure();
  Build b{r, op.getLoc()};
  Value x = op.getLhs();
  if (*p == 1) return r.replaceOp(op, x), success();
  if (*p == 2) return r.replaceOpWithNewOp<MulOp>(op, x, x), success();
  if (*p == 3) return r.replaceOpWithNewOp<MulOp>(op, b.mul(x, x), x), success();
  if (*p == 0.5) return r.replaceOpWithNewOp<SqrtOp>(op, x), success();
  if (*p == -0.5) return r.replaceOpWithNewOp<RsqrtOp>(op, x), success();
  if (*p == -1) return r.replaceOpWithNewOp<DivOp>(op, b.like(x, 1), x), success();
  return failure();
}

LogicalResult foldSelect(SelectOp op, PatternRewriter &r) {
  if (auto decided = splatOf(op.getCondition())) return r.replaceOp(op, *decided ? op.getOnTrue() : op.getOnFalse()), success();
  if (op.getOnTrue() == op.getOnFalse()) return r.replaceOp(op, op.getOnTrue()), success();
  if (auto inverse = op.getCondition().getDefiningOp<NotOp>())
    return r.replaceOpWithNewOp<SelectOp>(op, op.getType(), inverse.getInput(), op.getOnFalse(), op.getOnTrue()), success();
  // A choice that was already made by the same condition.
  auto first = op.getOnTrue().getDefiningOp<SelectOp>(), second = op.getOnFalse().getDefiningOp<SelectOp>();
  if (first && first.getCondition() == op.getCondition())
    return r.replaceOpWithNewOp<SelectOp>(op, op.getType(), op.getCondition(), first.getOnTrue(), op.getOnFalse()), success();
  if (second && second.getCondition() == op.getCondition())
    return r.replaceOpWithNewOp<SelectOp>(op, op.getType(), op.getCondition(), op.getOnTrue(), second.getOnFalse()), success();
  return failure();
}

/// A narrow value made wide and narrow again; f32 -> f64 -> f32 and the like.
LogicalResult foldCast(CastOp op, PatternRewriter &r) {
  if (auto c = splatOf(op.getInput()); c && isFloat(op.getInput()) && isFloat(op))
    return r.replaceOp(op, Build{r, op.getLoc()}.like(op, *c)), success();
  auto inner = op.getInput().getDefiningOp<CastOp>();
  if (!inner) return failure();
  auto from = dyn_cast<FloatType>(elementOf(inner.getInput())), middle = dyn_cast<FloatType>(elementOf(inner));
  if (!from || !middle || middle.getFPMantissaWidth() < from.getFPMantissaWidth() || middle.getWidth() <= from.getWidth()) return failure();
  if (inner.getInput().getType() == op.getType()) return r.replaceOp(op, inner.getInput()), success();
  return r.replaceOpWithNewOp<CastOp>(op, op.getType(), inner.getInput()), success();
}

/// Both operands are one number each.
struct OneNumber : RewritePattern {
  OneNumber(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &r) const override {
    if (!isa<AddOp, SubOp, MulOp, DivOp, NegOp, SqrtOp>(op) || !isFloat(op->getResult(0))) return failure();
    auto x = splatOf(op->getOperand(0)), y = splatOf(op->getOperand(op->getNumOperands() - 1));
    if (!x || !y) return failure();
    double z = isa<AddOp>(op)   ? *x + *y
               : isa<SubOp>(op) ? *x - *y
               : isa<MulOp>(op) ? *x * *y
               : isa<DivOp>(op) ? *x / *y
               : isa<NegOp>(op) ? -*x
                                : std::sqrt(*x);
    r.replaceOp(op, Build{r, op->getLoc()}.like(op->getResult(0), z));
    return success();
  }
};

/// f(broadcast(x), broadcast(y), c) = broadcast(f(x, y, c)) when all are repeated alike: fewer elements to compute.
struct RepeatLater : RewritePattern {
  RepeatLater(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &r) const override {
    if (!op->hasTrait<Elementwise>() || op->getNumResults() != 1) return failure();
    BroadcastOp like;
    for (Value v : op->getOperands())
      if (auto broadcast = v.getDefiningOp<BroadcastOp>()) {
        if (like &&
            (like.getDims() != broadcast.getDims() || typeOf(like.getInput()).getShape() != typeOf(broadcast.getInput()).getShape()))
          return failure();
        like = broadcast;
      } else if (!splatOf(v)) {
        return failure();
      }
    if (!like || splatOf(like) || typeOf(like.getInput()).getNumElements() == typeOf(like).getNumElements()) return failure();
    auto shape = typeOf(like.getInput()).getShape();
    Build b{r, op->getLoc()};
    OperationState state(op->getLoc(), op->getName());
    for (Value v : op->getOperands()) {
      auto broadcast = v.getDefiningOp<BroadcastOp>();
      state.operands.push_back(broadcast && !splatOf(v) ? broadcast.getInput() : b.splat(withShape(v, shape), *splatOf(v)));
    }
    state.addTypes(withShape(op->getResult(0), shape));
    state.addAttributes(op->getAttrs());
    Operation *narrow = r.create(state);
    r.replaceOpWithNewOp<BroadcastOp>(op, op->getResult(0).getType(), narrow->getResult(0), like.getDims());
    return success();
  }
};

} // namespace

void populateArithmeticPatterns(RewritePatternSet &patterns) {
  patterns.add(foldAdd).add(foldSub).add(foldMul).add(foldDiv).add(foldNeg).add(foldPow).add(foldSelect).add(foldCast);
  patterns.add<OneNumber, RepeatLater>(patterns.getContext());
}

} // namespace zero::nn

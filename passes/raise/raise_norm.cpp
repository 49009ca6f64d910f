//===- raise_norm.cpp - nn-raise-norm -------------------------------------------------------------===//
#include "passes/raise/Passes.h"
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_RAISENORMPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// x / sqrt(mean(x²) + eps), and the operation that yields it.
struct Normalised {
  Value x;
  double eps = 0;
};

/// s where v = 1 / sqrt(s), one element per row in any shape.
Value underReciprocalRoot(Value v) {
  v = viewed(v);
  if (auto rsqrt = v.getDefiningOp<RsqrtOp>()) return rsqrt.getInput();
  if (auto pow = v.getDefiningOp<PowOp>(); pow && splatOf(pow.getRhs()) == -0.5) return pow.getLhs();
  if (auto div = v.getDefiningOp<DivOp>(); div && splatOf(div.getLhs()) == 1.0)
    if (auto sqrt = viewed(div.getRhs()).getDefiningOp<SqrtOp>()) return sqrt.getInput();
  if (auto sqrt = v.getDefiningOp<SqrtOp>()) // sqrt(1 / s)
    if (auto div = viewed(sqrt.getInput()).getDefiningOp<DivOp>(); div && splatOf(div.getLhs()) == 1.0) return div.getRhs();
  return nullptr;
}

/// s where v = sqrt(s).
Value underRoot(Value v) {
  v = viewed(v);
  if (auto sqrt = v.getDefiningOp<SqrtOp>()) return sqrt.getInput();
  auto pow = v.getDefiningOp<PowOp>();
  return pow && splatOf(pow.getRhs()) == 0.5 ? pow.getLhs() : Value();
}

bool isSquareOf(Value v, Value x) {
  if (auto mul = v.getDefiningOp<MulOp>()) return mul.getLhs() == x && mul.getRhs() == x;
  auto pow = v.getDefiningOp<PowOp>();
  return pow && pow.getLhs() == x && splatOf(pow.getRhs()) == 2.0;
}

/// Whether s = mean(x²) + eps.
bool isMeanSquare(Value s, Value x, double &eps) {
  return inEitherOrder<AddOp>(viewed(s), [&](Value mean, Value number) {
    auto e = splatOf(number);
    Value squares = e ? meanOfRows(mean) : Value();
    // The mean may be taken of a reshaped square; the elements are in the same order.
    if (!squares || *e < 0 || shapeOf(squares).back() != shapeOf(x).back() || !isSquareOf(viewed(squares), x)) return false;
    eps = *e;
    return true;
  });
}

std::optional<Normalised> normalised(Operation *op) {
  Normalised result;
  if (auto div = dyn_cast<DivOp>(op)) {
    Value row = perRow(div.getRhs()), s = row ? underRoot(row) : Value();
    if (!s || !isMeanSquare(s, div.getLhs(), result.eps)) return std::nullopt;
    result.x = div.getLhs();
    return result;
  }
  if (!isa<MulOp>(op)) return std::nullopt;
  bool found = inEitherOrder<MulOp>(op->getResult(0), [&](Value x, Value factor) {
    Value row = perRow(factor), s = row ? underReciprocalRoot(row) : Value();
    result.x = x;
    return s && isMeanSquare(s, x, result.eps);
  });
  return found ? std::optional(result) : std::nullopt;
}

/// y where x = y - mean(y).
Value uncentred(Value x) {
  auto sub = x.getDefiningOp<SubOp>();
  Value row = sub ? perRow(sub.getRhs()) : Value();
  Value y = row ? meanOfRows(row) : Value();
  return y && viewed(y) == viewed(sub.getLhs()) && shapeOf(y).back() == shapeOf(x).back() ? sub.getLhs() : Value();
}

/// The operand of `op`, an Op on `v`, that is one vector for all rows; as that vector.
template <typename Op> Value vectorBeside(Operation *op, Value v) {
  auto binary = dyn_cast_or_null<Op>(op);
  if (!binary || binary.getLhs() == binary.getRhs()) return nullptr;
  return perColumn(binary.getLhs() == v ? binary.getRhs() : binary.getLhs());
}

struct RaiseNorm : impl::RaiseNormPassBase<RaiseNorm> {
  /// Builds the operation for `root` and what follows it; false if it is none.
  bool raise(Operation *root) {
    if (root->getNumResults() != 1 || !isFloat(root->getResult(0))) return false;
    auto match = normalised(root);
    if (!match || shapeOf(match->x).empty() || shapeOf(match->x).back() < 2) return false;
    // Forward: [conversion] [scale] [bias]. A conversion stays after the operation.
    Value end = root->getResult(0), scale, bias;
    auto conversion = dyn_cast_or_null<CastOp>(onlyUser(end));
    if (conversion && !isFloat(conversion)) conversion = nullptr;
    Value scaled = conversion ? conversion.getResult() : end;
    if (Operation *user = onlyUser(scaled); (scale = vectorBeside<MulOp>(user, scaled)))
      end = user->getResult(0);
    else
      conversion = nullptr;
    Value centre = uncentred(match->x);
    if (centre && scale)
      if (Operation *user = onlyUser(end); (bias = vectorBeside<AddOp>(user, end))) end = user->getResult(0);

    OpBuilder builder(end.getDefiningOp()); // after everything it reads
    Build b{builder, end.getLoc()};
    Value x = centre ? centre : match->x;
    auto vectorType = RankedTensorType::get({shapeOf(x).back()}, elementOf(x));
    auto vector = [&](Value v) { return b.cast(b.reshape(v, vectorType.getShape()), elementOf(x)); };
    scale = scale ? vector(scale) : b.splat(vectorType, 1);
    bias = bias ? vector(bias) : bias;
    auto eps = builder.getF32FloatAttr(float(match->eps));
    Value result;
    if (centre) {
      result = builder.create<LayerNormOp>(b.loc, x, scale, bias, eps).getResult();
      ++layerNorms;
    } else {
      result = builder.create<RmsNormOp>(b.loc, x, scale, eps).getResult();
      ++rmsNorms;
    }
    end.replaceAllUsesWith(b.cast(result, elementOf(end)));
    return true;
  }

  void runOnOperation() override {
    if (getOperation().isExternal() || getOperation()->hasAttr(NnDialect::kKernelAttr)) return;
    SmallVector<Operation *> roots;
    getOperation().walk([&](Operation *op) {
      if (isa<DivOp, MulOp>(op)) roots.push_back(op);
    });
    for (Operation *root : roots) raise(root);
    eraseDead(getOperation());
  }
};

} // namespace
} // namespace zero::raise

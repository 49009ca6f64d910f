//===- raise_gelu.cpp - nn-raise-gelu -------------------------------------------------------------===//
#include "passes/raise/Passes.h"
#include "passes/raise/match.h"
#include "passes/raise/patterns.h"
#include <cmath>

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_RAISEGELUPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// The erf or tanh somewhere below a sum or product with numbers.
Operation *curveUnder(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (isa<ErfOp, TanhOp>(op)) return op;
    if (!isa<AddOp, MulOp, DivOp>(op)) return nullptr;
    if (splatOf(op->getOperand(1)))
      v = op->getOperand(0);
    else if (splatOf(op->getOperand(0)) && !isa<DivOp>(op))
      v = op->getOperand(1);
    else
      return nullptr;
  }
  return nullptr;
}

/// number · x · phi with phi = a + a · erf(x / √2), or its tanh form, and number · a = 1/2.
std::optional<GeluKind> kindOf(double number, Value x, Value phi) {
  Operation *curve = curveUnder(phi);
  if (!curve) return std::nullopt;
  Type type = elementOf(x);
  auto outer = polynomialIn(phi, curve->getResult(0));
  auto inner = polynomialIn(curve->getOperand(0), x);
  if (!outer || !inner || !isNear(number * (*outer)[0], 0.5, type) || !isNear(number * (*outer)[1], 0.5, type) || (*outer)[2] != 0 ||
      (*outer)[3] != 0 || (*inner)[0] != 0 || (*inner)[2] != 0)
    return std::nullopt;
  if (isa<ErfOp>(curve)) return isNear((*inner)[1], M_SQRT1_2, type) && (*inner)[3] == 0 ? std::optional(GeluKind::erf) : std::nullopt;
  const double slope = M_2_SQRTPI * M_SQRT1_2; // √(2/π)
  return isNear((*inner)[1], slope, type) && isNear((*inner)[3], slope * 0.044715, type) ? std::optional(GeluKind::tanh) : std::nullopt;
}

struct RaiseGelu : impl::RaiseGeluPassBase<RaiseGelu> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(+[](MulOp op, PatternRewriter &r) -> LogicalResult {
      if (!isFloat(op)) return failure();
      for (Value x : partsOf(op)) {
        Product product = factorsOf(op, x);
        if (product.factors.size() != 2 || x == op.getResult() || !llvm::is_contained(product.factors, x)) continue;
        if (auto kind = kindOf(product.number, x, product.factors[product.factors[0] == x]))
          return r.replaceOpWithNewOp<GeluOp>(op, op.getType(), *kind, x), success();
      }
      return failure();
    });
    if (failed(applyPatterns(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

} // namespace
} // namespace zero::raise

//===- softmax.cpp - softmax over the last dimension -------------------------------------------===//
#include "compiler/nn/implement.h"
#include <cmath>

using namespace mlir;

namespace zero::nn {

LogicalResult SoftmaxOp::verify() {
  if (typeOf(getInput()).getRank() == 0) return emitOpError() << "needs a last dimension";
  return success();
}

/// A row without a finite maximum (all -inf) gives NaN, as in PyTorch.
Composed SoftmaxOp::decompose(Build &b) {
  Value x = getInput();
  int64_t n = typeOf(x).getShape().back();
  Value e = b.exp(b.sub(x, b.rows(b.maxLast(x), n)));
  Value sum = b.sumLast(e);
  return {b.mul(e, b.rows(b.div(b.like(sum, 1), sum), n))};
}

/// The softmax as it is read: itself, or itself with 0 in place of what is no number, if it is read in no other way. So exporters guard
/// attention to keys that are all masked.
static Value guarded(Value y) {
  Value guard;
  for (Operation *user : y.getUsers()) {
    if (isa<IsNanOp>(user)) continue;
    auto select = dyn_cast<SelectOp>(user);
    auto isNan = select ? select.getCondition().getDefiningOp<IsNanOp>() : IsNanOp();
    if (!isNan || isNan.getInput() != y || splatOf(select.getOnTrue()) != 0.0) return y;
    guard = select.getResult();
  }
  return guard ? guard : y;
}

/// y (d - sum(d y)).
LogicalResult SoftmaxOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  Value y = guarded(getResult()), along = b.sumLast(b.mul(d[0], y));
  out[0] = b.mul(y, b.sub(d[0], b.rows(along, typeOf(y).getShape().back())));
  return success();
}

LogicalResult SoftmaxOp::evaluate(Operands in, Results out) {
  int64_t n = columnsOf(*in[0]);
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>();
    auto y = out[0].data<T>();
    for (size_t row = 0; n > 0 && row < x.size(); row += n) {
      double peak = -INFINITY, sum = 0;
      for (int64_t j = 0; j < n; ++j) peak = std::max(peak, double(x[row + j]));
      std::vector<double> exps(n);
      for (int64_t j = 0; j < n; ++j) sum += exps[j] = std::exp(double(x[row + j]) - peak); // a row of -inf gives NaN, as everywhere
      for (int64_t j = 0; j < n; ++j) y[row + j] = T(exps[j] / sum);
    }
    return success();
  });
}

} // namespace zero::nn

//===- attention.cpp - gradient of attention -----------------------------------------------------------===//
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {

/// Needs the operands, the result and one number per row (lse); the scores are formed again. The mask gets no
/// gradient: whoever needs one keeps the attention decomposed.
LogicalResult AttentionOp::differentiate(OpBuilder &b, ValueRange d, SmallVectorImpl<Value> &out) {
  if (d[1]) return emitOpError() << "has no gradient through its second result (the log of the sum of exponentials)";
  auto grad = b.create<AttentionGradOp>(getLoc(), TypeRange{getQ().getType(), getK().getType(), getV().getType()}, getQ(), getK(), getV(),
                                        getMask(), getResult(), getLse(), d[0], getScaleAttr(), getCausalAttr());
  out[0] = grad.getDq();
  out[1] = grad.getDk();
  out[2] = grad.getDv();
  return success();
}

} // namespace zero::nn

//===- loss.cpp - gradient of the cross-entropy ------------------------------------------------------===//
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {

/// dlogits = (softmax(logits) - q(label)) * scale * dloss on rows that count, 0 on the others. Written with a
/// comparison instead of a scatter, and softmax as exp(logits - lse), so that one row kernel can turn the logits
/// into their gradient in place. The scale is the run's, not the model's: it has no gradient. Through the second result, the log of the sum of
/// exponentials, comes softmax(logits) * dlse.
LogicalResult CrossEntropyOp::differentiate(OpBuilder &builder, ValueRange d, SmallVectorImpl<Value> &out) {
  Build b{builder, getLoc()};
  Type element = elementOf(getLogits());
  int64_t rows = typeOf(getLogits()).getDimSize(0), classes = typeOf(getLogits()).getDimSize(1);
  Value softmax = b.exp(b.sub(getLogits(), b.rows(getLse(), classes)));
  if (!d[0]) {
    out[0] = b.mul(softmax, b.rows(d[1], classes));
    return success();
  }
  Value perLabel = b.mul(b.cast(b.reshape(getScale(), {}), element), d[0]);
  Value counts = b.compare(Predicate::ne, getLabels(), b.like(getLabels(), double(getIgnoreIndexAttr().getInt())));
  Value weight = b.everywhere(perLabel, {rows});
  weight = b.select(counts, weight, b.like(weight, 0));
  // 32-bit indices: as wide as the logits they are compared beside.
  Type index = builder.getI32Type();
  Value here = b.compare(Predicate::eq, b.iota(withElement(getLogits(), index), 1), b.rows(b.cast(getLabels(), index), classes));
  Value target = b.select(here, b.like(getLogits(), atLabel()), b.like(getLogits(), elsewhere()));
  if (d[1])
    out[0] = b.sub(b.mul(softmax, b.rows(b.add(weight, d[1]), classes)), b.mul(target, b.rows(weight, classes)));
  else
    out[0] = b.mul(b.sub(softmax, target), b.rows(weight, classes));
  return success();
}

} // namespace zero::nn

//===- cross_entropy.cpp - cross entropy of rows of logits and labels --------------------------===//
#include "compiler/nn/implement.h"
#include <cmath>

using namespace mlir;

namespace zero::nn {

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto logits = typeOf(a.getLogits()), labels = typeOf(a.getLabels());
  if (logits.getRank() != 2 || labels.getShape() != logits.getShape().drop_back())
    return reject(loc, "nn.cross_entropy: logits are [rows, classes] and labels [rows], not ", logits, " and ", labels);
  if (typeOf(a.getScale()).getNumElements() != 1) return reject(loc, "nn.cross_entropy: scale is one number, not ", a.getScale().getType());
  out.append({with(logits, {}), with(logits, logits.getShape().take_front())});
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  if (!(smoothing() >= 0 && smoothing() <= 1)) return emitOpError() << "smooths labels by " << smoothing() << ", which is not in [0, 1]";
  return success();
}

/// The label's logit is found by comparing the label with the index of every class: an ignored label, whatever its value, selects
/// nothing that counts and is never an index. A smoothed label takes all of the row's logits, centred as in the sum of exponentials: one
/// loop makes both sums, and large logits cancel before they are added.
bool CrossEntropyOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0), cut.set(1);
  return typeOf(getLogits()).getDimSize(0) == rows;
}

void CrossEntropyOp::takeRows(Build &, const Rows &, OperationState &) {}

bool CrossEntropyOp::sumsRows(unsigned result) { return result == 0; }

Composed CrossEntropyOp::decompose(Build &b) {
  Value x = getLogits(), labels = getLabels();
  int64_t rows = typeOf(x).getDimSize(0), classes = typeOf(x).getDimSize(1);
  Value max = b.maxLast(x), centred = b.sub(x, b.rows(max, classes));
  Value log = b.log(b.sumLast(b.exp(centred))), lse = b.add(log, max);
  Type index = b.b.getI32Type();
  Value here = b.compare(Predicate::eq, b.iota(withElement(x, index), 1), b.rows(b.cast(labels, index), classes)), row;
  if (smoothing() > 0)
    row = b.sub(log, b.sumLast(b.mul(b.select(here, b.like(x, atLabel()), b.like(x, elsewhere())), centred)));
  else
    row = b.sub(lse, b.sumLast(b.select(here, x, b.like(x, 0))));
  Value scale = b.everywhere(b.cast(getScale(), elementOf(x)), {rows});
  Value counts = b.compare(Predicate::ne, labels, b.like(labels, double(getIgnoreIndexAttr().getInt())));
  return {b.sumAll(b.select(counts, b.mul(row, scale), b.like(lse, 0))), lse};
}

/// dlogits = (softmax(logits) - q(label)) * scale * dloss on rows that count, 0 on the others. Written with a
/// comparison instead of a scatter, and softmax as exp(logits - lse), so that one row kernel can turn the logits
/// into their gradient in place. The scale is the run's, not the model's: it has no gradient. Through the second result, the log of the sum
/// of exponentials, comes softmax(logits) * dlse.
LogicalResult CrossEntropyOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
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

/// log(sum(exp(row))).
template <typename T> static double logSumExp(const T *row, int64_t n) {
  double peak = -INFINITY, sum = 0;
  for (int64_t j = 0; j < n; ++j) peak = std::max(peak, double(row[j]));
  if (peak == -INFINITY) return peak;
  for (int64_t j = 0; j < n; ++j) sum += std::exp(double(row[j]) - peak);
  return peak + std::log(sum);
}

LogicalResult CrossEntropyOp::evaluate(Operands in, Results out) {
  int64_t classes = in[0]->shape()[1], ignore = getIgnoreIndex();
  Tensor wide = in[1]->cast(IntegerType::get(getContext(), 64));
  auto labels = wide.data<int64_t>();
  double scale = in[2]->at(0), loss = 0;
  return withFloat(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    auto logits = in[0]->data<T>();
    auto lse = out[1].data<T>();
    for (size_t row = 0; row < lse.size(); ++row) {
      const T *r = logits.data() + row * classes;
      double norm = logSumExp(r, classes);
      lse[row] = T(norm);
      if (labels[row] == ignore) continue;
      if (labels[row] < 0 || labels[row] >= classes)
        return emitOpError() << "label " << labels[row] << " of row " << row << " is not in [0, " << classes << ")";
      double mean = 0; // of the logits, by the label's distribution
      for (int64_t c = 0; c < classes && smoothing() > 0; ++c) mean += elsewhere() * double(r[c]);
      loss += norm - (1 - smoothing()) * double(r[labels[row]]) - mean;
    }
    out[0].data<T>()[0] = T(loss * scale);
    return success();
  });
}

} // namespace zero::nn

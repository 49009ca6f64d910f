//===- rows.cpp - rows where they lie, and tensors below each other --------------------------------===//
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

LogicalResult RowsOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank() || from.getRank() < 1 ||
      from.getShape().drop_front() != to.getShape().drop_front())
    return emitOpError() << to << " are no rows of " << from;
  int64_t first = int64_t(getFrom()), count = to.getDimSize(0);
  if (first < 0 || count < 1 || count > from.getDimSize(0) - first)
    return emitOpError() << "takes rows " << first << " to " << first + count << " of " << from;
  return success();
}

/// Zeros above and below.
LogicalResult RowsOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  SmallVector<int64_t> low(from.getRank(), 0), high(low), interior(low);
  low[0] = int64_t(getFrom());
  high[0] = from.getDimSize(0) - low[0] - to.getDimSize(0);
  out[0] = Build{b, getLoc()}.pad(d[0], low, high, interior);
  return success();
}

LogicalResult RowsOp::evaluate(Operands in, Results out) {
  size_t row = out[0].bytes.size() / size_t(out[0].shape()[0]);
  auto first = in[0]->bytes.begin() + int64_t(row) * int64_t(getFrom());
  std::copy(first, first + int64_t(out[0].bytes.size()), out[0].bytes.begin());
  return success();
}

LogicalResult JoinRowsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  if (a.getInputs().empty()) return reject(loc, "nn.join_rows: nothing to join");
  auto first = typeOf(a.getInputs()[0]);
  if (first.getRank() < 1) return reject(loc, "nn.join_rows: ", first, " has no rows");
  SmallVector<int64_t> shape(first.getShape());
  shape[0] = 0;
  for (Value v : a.getInputs()) {
    auto t = typeOf(v);
    if (t.getElementType() != first.getElementType() || t.getRank() != first.getRank() ||
        t.getShape().drop_front() != first.getShape().drop_front())
      return reject(loc, "nn.join_rows: ", t, " does not fit below ", first);
    shape[0] += t.getDimSize(0);
  }
  out.push_back(with(first, shape));
  return success();
}

LogicalResult JoinRowsOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  int64_t from = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    out[i] = b.create<RowsOp>(getLoc(), input.getType(), d[0], b.getI64IntegerAttr(from));
    from += typeOf(input).getDimSize(0);
  }
  return success();
}

LogicalResult JoinRowsOp::evaluate(Operands in, Results out) {
  auto to = out[0].bytes.begin();
  for (const Tensor *part : in) to = std::copy(part->bytes.begin(), part->bytes.end(), to);
  return success();
}

} // namespace zero::nn

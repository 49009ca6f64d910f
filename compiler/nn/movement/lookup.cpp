//===- lookup.cpp - rows and elements by index -------------------------------------------------===//
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput()), indices = typeOf(a.getIndices());
  if (in.getRank() == 0) return reject(loc, "nn.gather: a scalar has no rows");
  SmallVector<int64_t> shape(indices.getShape());
  llvm::append_range(shape, in.getShape().drop_front());
  out.push_back(with(in, shape));
  return success();
}

Number GatherOp::read(ElementReader &reader, At at) {
  size_t lead = typeOf(getIndices()).getRank();
  auto row = reader.indexFrom(1, at.take_front(lead), typeOf(getInput()).getDimSize(0));
  if (!row) return {-1};
  Indices from{*row};
  llvm::append_range(from, at.drop_front(lead));
  return reader.operand(0, from);
}

LogicalResult GatherOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = b.create<ScatterAddOp>(getLoc(), getInput().getType(), getIndices(), d[0]);
  return success();
}

LogicalResult GatherOp::evaluate(Operands in, Results results) {
  Tensor &out = results[0];
  auto rows = indicesWithin(*this, *in[1], in[0]->shape()[0]);
  if (failed(rows)) return failure();
  size_t row = rows->empty() ? 0 : out.bytes.size() / rows->size();
  for (size_t i = 0; i < rows->size(); ++i) std::copy_n(in[0]->bytes.begin() + (*rows)[i] * row, row, out.bytes.begin() + i * row);
  return success();
}

//===----------------------------------------------------------------------===//
// Elements of each row
//===----------------------------------------------------------------------===//

LogicalResult TakeAlongOp::verify() {
  auto in = typeOf(getInput()), indices = typeOf(getIndices()), expected = withShape(getInput(), indices.getShape());
  if (in.getRank() == 0 || indices.getShape().take_front(in.getRank() - 1) != in.getShape().drop_back() ||
      indices.getRank() > in.getRank() || typeOf(getResult()) != expected)
    return emitOpError() << "takes one element of each row, or several: " << in << " by " << indices << " gives " << expected;
  return success();
}

Number TakeAlongOp::read(ElementReader &reader, At at) {
  auto column = reader.indexFrom(1, at, typeOf(getInput()).getShape().back());
  if (!column) return {-1};
  Indices from(at.take_front(typeOf(getInput()).getRank() - 1));
  from.push_back(*column);
  return reader.operand(0, from);
}

bool TakeAlongOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set();
  auto lead = leadingOf(typeOf(getInput()).getShape(), rows);
  return lead && *lead < typeOf(getInput()).getRank();
}

void TakeAlongOp::takeRows(Build &, const Rows &, OperationState &) {}

/// Where one element per row receives the gradient: written as a comparison with the index, which fuses with its neighbours.
LogicalResult TakeAlongOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  auto type = typeOf(getInput());
  if (typeOf(getIndices()).getRank() == type.getRank()) {
    out[0] = builder.create<PutAlongOp>(getLoc(), type, d[0], getIndices());
    return success();
  }
  int64_t columns = type.getShape().back();
  Value here =
      b.compare(Predicate::eq, b.iota(withElement(getInput(), elementOf(getIndices())), type.getRank() - 1), b.rows(getIndices(), columns));
  out[0] = b.select(here, b.rows(d[0], columns), b.like(getInput(), 0));
  return success();
}

LogicalResult TakeAlongOp::evaluate(Operands in, Results results) {
  Tensor &out = results[0];
  int64_t columns = in[0]->shape().back();
  auto picks = indicesWithin(*this, *in[1], columns);
  if (failed(picks)) return failure();
  size_t width = widthOf(out), rows = size_t(in[0]->size() / columns), each = rows ? picks->size() / rows : 0;
  for (size_t i = 0; i < picks->size(); ++i)
    std::memcpy(out.bytes.data() + i * width, in[0]->bytes.data() + (int64_t(i / each) * columns + (*picks)[i]) * int64_t(width), width);
  return success();
}

LogicalResult PutAlongOp::verify() {
  auto updates = typeOf(getUpdates()), result = typeOf(getResult());
  if (result.getRank() == 0 || updates.getRank() != result.getRank() || updates.getShape() != typeOf(getIndices()).getShape() ||
      updates.getShape().drop_back() != result.getShape().drop_back() || updates.getElementType() != result.getElementType())
    return emitOpError() << "of " << updates << " by " << typeOf(getIndices()) << " does not give " << result;
  return success();
}

LogicalResult PutAlongOp::evaluate(Operands in, Results results) {
  int64_t columns = columnsOf(results[0]), each = columnsOf(*in[0]);
  auto places = indicesWithin(*this, *in[1], columns);
  if (failed(places)) return failure();
  return withFloat(results[0].elementType(), [&](auto e) {
    using T = decltype(e);
    std::vector<double> sums(size_t(results[0].size()));
    for (size_t i = 0; i < places->size(); ++i) sums[size_t(int64_t(i) / each * columns + (*places)[i])] += double(in[0]->data<T>()[i]);
    llvm::transform(sums, results[0].data<T>().begin(), [](double sum) { return T(sum); });
    return success();
  });
}

} // namespace zero::nn

//===- generators.cpp - constants, indices and random numbers ----------------------------------===//
// What makes its elements of nothing but their index. A kernel makes them where they are read.
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// One number; several are an operand of the launch.
bool ConstantOp::isFree() {
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  return dense && dense.isSplat();
}

Number ConstantOp::read(ElementReader &reader, At) {
  if (isFree()) return reader.constant(cast<DenseElementsAttr>(getValue()).getSplatValue<Attribute>());
  emitOpError("has several values and cannot stand in a kernel; it must be an operand of the launch");
  return {-1};
}

/// One number, everywhere.
bool ConstantOp::readsRows(int64_t rows, llvm::SmallBitVector &) {
  return isa<SplatElementsAttr>(getValue()) && leadingOf(typeOf(getResult()).getShape(), rows);
}

void ConstantOp::takeRows(Build &, const Rows &, OperationState &part) {
  part.attributes.set(getValueAttrName(), cast<SplatElementsAttr>(getValue()).resizeSplat(cast<ShapedType>(part.types[0])));
}

LogicalResult ConstantOp::evaluate(Operands, Results out) {
  auto value = Tensor::fromAttribute(getValue());
  if (failed(value)) return emitOpError() << "holds an attribute the interpreter cannot read";
  out[0] = std::move(*value);
  return success();
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  int64_t rank = typeOf(getResult()).getRank(), dim = int64_t(getDim());
  if (dim < 0 || dim >= rank) return emitOpError() << "dimension " << dim << " of a tensor of rank " << rank;
  return success();
}

Number IotaOp::read(ElementReader &reader, At at) { return reader.position(at[getDim()]); }

bool IotaOp::isFree() { return true; }

LogicalResult IotaOp::evaluate(Operands, Results results) {
  Tensor &out = results[0];
  int64_t inner = 1, size = out.shape()[getDim()];
  for (int64_t n : out.shape().drop_front(getDim() + 1)) inner *= n;
  return withElement(out.elementType(), [&](auto e) {
    auto y = out.data<decltype(e)>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = decltype(e)(int64_t(i) / inner % size);
    return success();
  });
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

LogicalResult RandomOp::verify() { return verifyStream(*this); }

/// Element i of sample s is number s * (elements of a sample) + i of the generator, so that ranks and micro-steps draw apart.
Number RandomOp::read(ElementReader &reader, At at) {
  auto type = typeOf(getResult());
  int64_t samples = int64_t(getSamples());
  return reader.random(getId(), samples ? type.getNumElements() / samples : 0, reader.space().linearize(at, type.getShape()));
}

bool RandomOp::isFree() { return true; }
unsigned RandomOp::getWork() { return kLongWork; }

LogicalResult RandomOp::evaluate(Operands in, Results out) {
  auto y = out[0].data<float>();
  return draw(*this, *in[0], out[0].size(), [&](size_t i, float number) { y[i] = number; });
}

} // namespace zero::nn

//===- build.cpp - short ways to write nn operations --------------------------------------------===//
#include "compiler/nn/build.h"

using namespace mlir;

namespace zero::nn {

RankedTensorType typeOf(Value v) { return llvm::cast<RankedTensorType>(v.getType()); }
Type elementOf(Value v) { return typeOf(v).getElementType(); }
bool isFloat(Value v) { return isa<FloatType>(elementOf(v)); }
RankedTensorType withShape(Value v, ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, elementOf(v)); }
RankedTensorType withElement(Value v, Type element) { return RankedTensorType::get(typeOf(v).getShape(), element); }

std::optional<double> splatOf(Value v) {
  while (isa_and_nonnull<BroadcastOp, ReshapeOp>(v.getDefiningOp())) v = v.getDefiningOp()->getOperand(0);
  auto constant = v.getDefiningOp<ConstantOp>();
  if (!constant) return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !dense.isSplat()) return std::nullopt;
  if (isa<FloatType>(dense.getElementType())) {
    APFloat number = dense.getSplatValue<APFloat>();
    bool lost = false;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return number.convertToDouble();
  }
  APInt number = dense.getSplatValue<APInt>();
  if (number.getSignificantBits() > 54) return std::nullopt; // no double has all of them
  return number.getBitWidth() == 1 ? double(number.getZExtValue()) : double(number.getSExtValue());
}

bool isConstant(Value v) {
  while (isa_and_nonnull<BroadcastOp, ReshapeOp, TransposeOp, SliceOp, CastOp>(v.getDefiningOp())) v = v.getDefiningOp()->getOperand(0);
  return isa_and_nonnull<ConstantOp>(v.getDefiningOp());
}

static bool isSplat(Value v, double number) {
  auto n = splatOf(v);
  return n && *n == number;
}

Value Build::splat(RankedTensorType type, double number) {
  Attribute element;
  if (isa<FloatType>(type.getElementType()))
    element = b.getFloatAttr(type.getElementType(), number);
  else
    element = b.getIntegerAttr(type.getElementType(), int64_t(number));
  return b.create<ConstantOp>(loc, DenseElementsAttr::get(type, element));
}
Value Build::iota(RankedTensorType type, int64_t dim) { return b.create<IotaOp>(loc, type, b.getI64IntegerAttr(dim)); }

Value Build::add(Value x, Value y) {
  if (isSplat(y, 0)) return x;
  if (isSplat(x, 0)) return y;
  return b.create<AddOp>(loc, x, y);
}
Value Build::sub(Value x, Value y) { return isSplat(y, 0) ? x : b.create<SubOp>(loc, x, y); }
Value Build::mul(Value x, Value y) {
  if (isSplat(y, 1)) return x;
  if (isSplat(x, 1)) return y;
  return b.create<MulOp>(loc, x, y);
}
Value Build::div(Value x, Value y) { return isSplat(y, 1) ? x : b.create<DivOp>(loc, x, y); }
Value Build::max(Value x, Value y) { return b.create<MaxOp>(loc, x, y); }
Value Build::neg(Value x) { return b.create<NegOp>(loc, x); }
Value Build::exp(Value x) { return b.create<ExpOp>(loc, x); }
Value Build::log(Value x) { return b.create<LogOp>(loc, x); }
Value Build::tanh(Value x) { return b.create<TanhOp>(loc, x); }
Value Build::erf(Value x) { return b.create<ErfOp>(loc, x); }
Value Build::rsqrt(Value x) { return b.create<RsqrtOp>(loc, x); }
Value Build::sigmoid(Value x) { return b.create<SigmoidOp>(loc, x); }
Value Build::compare(Predicate predicate, Value x, Value y) {
  return b.create<CompareOp>(loc, withElement(x, b.getI1Type()), PredicateAttr::get(b.getContext(), predicate), x, y);
}
Value Build::select(Value condition, Value x, Value y) { return b.create<SelectOp>(loc, x.getType(), condition, x, y); }
Value Build::cast(Value v, Type element) {
  return elementOf(v) == element ? v : b.create<CastOp>(loc, withElement(v, element), v).getResult();
}

Value Build::reshape(Value v, ArrayRef<int64_t> shape) {
  return typeOf(v).getShape() == shape ? v : b.create<ReshapeOp>(loc, withShape(v, shape), v).getResult();
}
Value Build::slice(Value v, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  return b.create<SliceOp>(loc, withShape(v, sizes), v, starts, sizes, steps);
}
Value Build::pad(Value v, ArrayRef<int64_t> low, ArrayRef<int64_t> high, ArrayRef<int64_t> interior) {
  TypedAttr zero = b.getZeroAttr(elementOf(v));
  return b.create<PadOp>(loc, v, zero, low, high, interior);
}
Value Build::broadcast(Value v, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  if (typeOf(v).getShape() == shape) return v;
  return b.create<BroadcastOp>(loc, withShape(v, shape), v, b.getDenseI64ArrayAttr(dims));
}
Value Build::rows(Value v, int64_t columns) {
  SmallVector<int64_t> shape(typeOf(v).getShape());
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  shape.push_back(columns);
  return broadcast(v, shape, dims);
}
Value Build::columns(Value v, ArrayRef<int64_t> shape) { return broadcast(v, shape, {int64_t(shape.size()) - 1}); }
Value Build::everywhere(Value v, ArrayRef<int64_t> shape) { return broadcast(reshape(v, {}), shape, {}); }

Value Build::reduce(ReductionKind kind, Value v, ArrayRef<int64_t> dims) {
  if (dims.empty()) return v;
  return b.create<ReduceOp>(loc, ReductionKindAttr::get(b.getContext(), kind), v, b.getDenseI64ArrayAttr(dims));
}
Value Build::sumLast(Value v) { return reduce(ReductionKind::sum, v, {typeOf(v).getRank() - 1}); }
Value Build::meanLast(Value v) { return mul(sumLast(v), 1.0 / double(typeOf(v).getShape().back())); }
Value Build::maxLast(Value v) { return reduce(ReductionKind::max, v, {typeOf(v).getRank() - 1}); }
Value Build::sumRows(Value v) { return reduce(ReductionKind::sum, v, llvm::to_vector(llvm::seq<int64_t>(0, typeOf(v).getRank() - 1))); }
Value Build::sumAll(Value v) { return reduce(ReductionKind::sum, v, llvm::to_vector(llvm::seq<int64_t>(0, typeOf(v).getRank()))); }

} // namespace zero::nn

//===- primitives.cpp - types and numbers of the nn dialect in a program ---------------------------===//
#include "compiler/codegen/primitives.h"

using namespace mlir;

namespace zero::codegen {

Scalar scalarOf(Type type) {
  if (type.isF32()) return Scalar::F32;
  if (type.isF64()) return Scalar::F64;
  if (type.isF16()) return Scalar::F16;
  if (type.isBF16()) return Scalar::BF16;
  if (type.isInteger(64)) return Scalar::I64;
  if (type.isInteger(32)) return Scalar::I32;
  return Scalar::Bool;
}
Scalar scalarOf(Value v) { return scalarOf(cast<RankedTensorType>(v.getType()).getElementType()); }
Scalar computed(Scalar t) { return t == Scalar::F16 || t == Scalar::BF16 ? Scalar::F32 : t; }

double toDouble(APFloat value) {
  if (value.isNaN()) return NAN; // whichever NaN
  bool inexact;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToDouble();
}

} // namespace zero::codegen

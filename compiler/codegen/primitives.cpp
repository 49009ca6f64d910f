//===- primitives.cpp - types and functions of the nn dialect in a program -------------------------===//
#include "compiler/codegen/primitives.h"
#include "compiler/nn/Nn.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero::nn;

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

std::optional<Fn> functionOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Fn>>(op)
      .Case([](AddOp) { return Fn::Add; })
      .Case([](SubOp) { return Fn::Sub; })
      .Case([](nn::MulOp) { return Fn::Mul; })
      .Case([](DivOp) { return Fn::Div; })
      .Case([](ModOp) { return Fn::Mod; })
      .Case([](PowOp) { return Fn::Pow; })
      .Case([](MaxOp) { return Fn::Max; })
      .Case([](MinOp) { return Fn::Min; })
      .Case([](AndOp) { return Fn::And; })
      .Case([](OrOp) { return Fn::Or; })
      .Case([](XorOp) { return Fn::Xor; })
      .Case([](NotOp) { return Fn::Not; })
      .Case([](NegOp) { return Fn::Neg; })
      .Case([](AbsOp) { return Fn::Abs; })
      .Case([](ExpOp) { return Fn::Exp; })
      .Case([](LogOp) { return Fn::Log; })
      .Case([](SqrtOp) { return Fn::Sqrt; })
      .Case([](RsqrtOp) { return Fn::Rsqrt; })
      .Case([](TanhOp) { return Fn::Tanh; })
      .Case([](ErfOp) { return Fn::Erf; })
      .Case([](SinOp) { return Fn::Sin; })
      .Case([](CosOp) { return Fn::Cos; })
      .Case([](FloorOp) { return Fn::Floor; })
      .Case([](SigmoidOp) { return Fn::Sigmoid; })
      .Case([](IsNanOp) { return Fn::IsNan; })
      .Case([](SelectOp) { return Fn::Select; })
      .Case([](CastOp) { return Fn::Cast; })
      .Case([](CompareOp c) { return Fn(int(Fn::Eq) + int(c.getPredicate())); })
      .Default([](Operation *) { return std::nullopt; });
}

double toDouble(APFloat value) {
  if (value.isNaN()) return NAN; // whichever NaN
  bool inexact;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToDouble();
}

} // namespace zero::codegen

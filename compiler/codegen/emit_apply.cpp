//===- emit_apply.cpp - functions of a kernel to vector code ---------------------------------------===//
#include "compiler/codegen/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <array>

using namespace mlir;

namespace zero::codegen {

/// Whole numbers: the remainder takes the divisor's sign.
Value Emitter::quotient(Fn fn, Scalar type, Value x, Value y) {
  auto select = [&](Value c, Value u, Value v) -> Value { return b.create<arith::SelectOp>(loc, c, u, v); };
  auto is = [&](arith::CmpIPredicate predicate, Value u, Value v) -> Value { return b.create<arith::CmpIOp>(loc, predicate, u, v); };
  if (isFloat(type)) return b.create<arith::DivFOp>(loc, x, y);
  // Lanes that do not count may hold a zero divisor, and data the least number and -1, whose quotient wraps: neither must trap.
  Value zero = math.whole(x.getType(), 0), negates = is(arith::CmpIPredicate::eq, y, math.whole(x.getType(), -1));
  Value traps = b.create<arith::OrIOp>(loc, is(arith::CmpIPredicate::eq, y, zero), negates);
  y = select(traps, math.whole(x.getType(), 1), y);
  if (fn == Fn::Div) return select(negates, b.create<arith::SubIOp>(loc, zero, x), b.create<arith::DivSIOp>(loc, x, y));
  Value rest = b.create<arith::RemSIOp>(loc, x, y);
  Value differs = b.create<arith::XOrIOp>(loc, is(arith::CmpIPredicate::slt, rest, zero), is(arith::CmpIPredicate::slt, y, zero));
  Value correct = b.create<arith::AndIOp>(loc, differs, is(arith::CmpIPredicate::ne, rest, zero));
  return select(correct, b.create<arith::AddIOp>(loc, rest, y), rest);
}

/// A shift by all places or more is none of the machine's.
Value Emitter::shift(Fn fn, Value x, Value places) {
  Value zero = math.whole(x.getType(), 0), width = math.whole(x.getType(), getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth());
  Value fits = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, places, width);
  places = b.create<arith::SelectOp>(loc, fits, places, zero);
  Value moved =
      fn == Fn::ShiftLeft ? b.create<arith::ShLIOp>(loc, x, places).getResult() : b.create<arith::ShRUIOp>(loc, x, places).getResult();
  return b.create<arith::SelectOp>(loc, fits, moved, zero);
}

Value Emitter::compare(Fn fn, Scalar type, Value x, Value y) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static const F floats[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
  static const I signedInts[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  static const I booleans[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  int which = int(fn) - int(Fn::Eq);
  if (isFloat(type)) return b.create<arith::CmpFOp>(loc, floats[which], x, y);
  return b.create<arith::CmpIOp>(loc, type == Scalar::Bool ? booleans[which] : signedInts[which], x, y);
}

/// To the precision of `to`, in registers of `type`.
Value Emitter::convert(Value x, Scalar from, Scalar to, Scalar type) {
  Type result = math.shaped(x, typeOf(type));
  auto wholeToFloat = [&]() -> Value {
    return from == Scalar::Bool ? b.create<arith::UIToFPOp>(loc, result, x).getResult()
                                : b.create<arith::SIToFPOp>(loc, result, x).getResult();
  };
  bool real = isFloat(from);
  if (to == Scalar::F16 || to == Scalar::BF16) {
    if (!real)
      x = wholeToFloat();
    else if (from == Scalar::F64)
      x = b.create<arith::TruncFOp>(loc, result, x);
    return math.widen(math.narrow(x, storedAs(to)));
  }
  if (to == Scalar::Bool)
    return real ? b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNE, x, math.constant(x, 0)).getResult()
                : b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, x, math.whole(x.getType(), 0)).getResult();
  if (isFloat(to)) {
    if (!real) return wholeToFloat();
    return to == Scalar::F64 ? b.create<arith::ExtFOp>(loc, result, x).getResult() : b.create<arith::TruncFOp>(loc, result, x).getResult();
  }
  if (real) return b.create<arith::FPToSIOp>(loc, result, x);
  if (from == Scalar::Bool) return b.create<arith::ExtUIOp>(loc, result, x);
  return to == Scalar::I64 ? b.create<arith::ExtSIOp>(loc, result, x).getResult() : b.create<arith::TruncIOp>(loc, result, x).getResult();
}

Value Emitter::apply(const Node &n) {
  bool wide = isVector(n);
  auto operand = [&](unsigned i) { return wide ? vector(n.operands[i]) : value(n.operands[i]); };
  Scalar from = n.operands.empty() ? n.type : p.nodes[n.operands[0]].type;
  bool real = isFloat(from);
  if (n.fn == Fn::Random) return math.random(value(n.operands[0]), n.whole, operand(1));
  if (n.fn == Fn::Pow) {
    const Node &exponent = p.nodes[n.operands[1]];
    if (exponent.kind == Node::Constant && Math::simplePower(exponent.real)) return math.pow(operand(0), exponent.real);
    return math.pow(operand(0), operand(1));
  }
  if (n.fn == Fn::Exp && math.approximate) {
    const Node &difference = p.nodes[n.operands[0]];
    auto of = [&](unsigned i) { return wide ? vector(difference.operands[i]) : value(difference.operands[i]); };
    if (difference.kind == Node::Apply && difference.fn == Fn::Sub && !inRow.contains(n.operands[0])) return math.exp(of(0), of(1));
  }
  std::array<Value, 3> in{};
  for (unsigned i = 0; i < n.operands.size(); ++i) in.at(i) = operand(i);
  Value x = in[0], y = in[1];
  switch (n.fn) {
  case Fn::Add:
    return combine(Fn::Add, n.type, x, y);
  case Fn::Max:
  case Fn::Min:
    return combine(n.fn, n.type, x, y);
  case Fn::Sub:
    return real ? b.create<arith::SubFOp>(loc, x, y).getResult() : b.create<arith::SubIOp>(loc, x, y).getResult();
  case Fn::Mul:
    return real ? b.create<arith::MulFOp>(loc, x, y).getResult() : b.create<arith::MulIOp>(loc, x, y).getResult();
  case Fn::Div:
  case Fn::Mod:
    return quotient(n.fn, from, x, y);
  case Fn::And:
    return b.create<arith::AndIOp>(loc, x, y);
  case Fn::Or:
    return b.create<arith::OrIOp>(loc, x, y);
  case Fn::Xor:
    return b.create<arith::XOrIOp>(loc, x, y);
  case Fn::ShiftLeft:
  case Fn::ShiftRight:
    return shift(n.fn, x, y);
  case Fn::Not:
    return b.create<arith::XOrIOp>(loc, x, math.whole(x.getType(), 1));
  case Fn::Neg:
    return real ? b.create<arith::NegFOp>(loc, x).getResult() : b.create<arith::SubIOp>(loc, math.whole(x.getType(), 0), x).getResult();
  case Fn::Abs:
    return real ? b.create<math::AbsFOp>(loc, x).getResult()
                : b.create<arith::MaxSIOp>(loc, x, b.create<arith::SubIOp>(loc, math.whole(x.getType(), 0), x)).getResult();
  case Fn::Exp:
    return math.exp(x);
  case Fn::Log:
    return math.log(x);
  case Fn::Sqrt:
    return b.create<math::SqrtOp>(loc, x);
  case Fn::Rsqrt:
    return math.rsqrt(x);
  case Fn::Tanh:
    return math.tanh(x);
  case Fn::Erf:
    return math.erf(x);
  case Fn::Sin:
    return math.sin(x);
  case Fn::Cos:
    return math.cos(x);
  case Fn::Floor:
    return b.create<math::FloorOp>(loc, x);
  case Fn::Sigmoid:
    return math.sigmoid(x);
  case Fn::IsNan:
    return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, x);
  case Fn::Eq:
  case Fn::Ne:
  case Fn::Lt:
  case Fn::Le:
  case Fn::Gt:
  case Fn::Ge:
    return compare(n.fn, from, x, y);
  case Fn::Select:
    return b.create<arith::SelectOp>(loc, x, y, in[2]);
  case Fn::Cast:
    return convert(x, from, Scalar(n.whole), n.type);
  case Fn::Pow:
  case Fn::Random:
    break; // above
  }
  llvm_unreachable("function of a node");
}

} // namespace zero::codegen

//===- integers.cpp - bits of integers, and casts to integers of fewer bits -------------------------------===//
// The dialect has signed integers of 32 and 64 bits; unsigned ones and those of 8 and 16 bits lie in these, u64 with its bits.
#include "compiler/onnx/ops/arithmetic.h"
#include "compiler/onnx/origin.h"
#include <cmath>

namespace zero::onnx {
namespace {

Val keepBits(NodeContext &c, const Val &x, unsigned bits) {
  return c.e.binary<nn::BitAndOp>(x, like(c, std::ldexp(1.0, int(bits)) - 1, x));
}

/// Of numbers that the type does not have the low bits stay, as in PyTorch, of floats those of their whole part.
Val wrapped(NodeContext &c, Val x, Type type, mlir::Type to) {
  unsigned bits = 8 * sizeOf(type);
  bool narrower = bits < to.getIntOrFloatBitWidth();
  if (!narrower || !x || x.isBool()) return c.e.convert(x, to);
  if (x.isFloat() || type == Type::UInt32) x = c.e.convert(x, c.e.i64());
  Val low = c.e.convert(keepBits(c, x, bits), to);
  if (unsignedBitsOf(type)) return low;
  Val sign = like(c, std::ldexp(1.0, int(bits) - 1), low);
  return c.e.sub(c.e.binary<nn::BitXorOp>(low, sign), sign);
}

Vals cast(NodeContext &c) {
  Type type = Type(c.integer("to", 0));
  mlir::Type to = elementType(type, c.e.context());
  if (!to) // the number that PyTorch knows bfloat16 by
    return c.fail("a cast to " + name(type) + " is not supported" +
                  (type == Type::Complex128 ? "; PyTorch's older exporter writes it for bfloat16: export with dynamo=True" : ""));
  if ((type == Type::Float16 || type == Type::BFloat16) && c.has(0) && c.inputs[0].value && c.inputs[0].isFloat())
    c.importer.notes.count(NoteKind::HalfCast, pathOf(c.node));
  if (!to.isInteger() || type == Type::Bool) return {c.e.convert(c.in(0), to)};
  Val r = wrapped(c, c.in(0), type, to);
  r.integer = type;
  return {r};
}

Vals castLike(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  return {y ? c.e.convert(x, y.element()) : Val()};
}

template <typename Op> Vals bitwise(NodeContext &c) { return {c.e.binary<Op>(c.in(0), c.in(1))}; }

Vals bitwiseNot(NodeContext &c) {
  Val x = c.in(0), r = c.e.sub(like(c, -1, x), x);
  unsigned bits = unsignedBitsOf(x.integer);
  return {bits && bits < 64 ? keepBits(c, r, bits) : r};
}

Vals bitShift(NodeContext &c) {
  Val x = c.in(0), places = c.in(1);
  if (c.string("direction", "") == "RIGHT") return {c.e.binary<nn::ShiftRightOp>(x, places)};
  unsigned bits = unsignedBitsOf(x.integer);
  if (!bits) return c.fail("its numbers are not unsigned");
  Val r = c.e.binary<nn::ShiftLeftOp>(x, places);
  return {bits < 64 ? keepBits(c, r, bits) : r};
}

} // namespace

void registerIntegers(Registry &r) {
  r["Cast"] = {cast};
  r["CastLike"] = {castLike, 15};
  r["BitwiseAnd"] = {bitwise<nn::BitAndOp>, 18};
  r["BitwiseOr"] = {bitwise<nn::BitOrOp>, 18};
  r["BitwiseXor"] = {bitwise<nn::BitXorOp>, 18};
  r["BitwiseNot"] = {bitwiseNot, 18};
  r["BitShift"] = {bitShift, 11};
}

} // namespace zero::onnx

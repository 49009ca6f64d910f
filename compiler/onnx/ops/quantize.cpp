//===- quantize.cpp - numbers to small integers and back ---------------------------------------------===//
#include "compiler/onnx/ops/arithmetic.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

namespace zero::onnx {
namespace {

/// Scales or zero points, one for all or one for each slice of x along `axis`, as they broadcast with x.
Val along(NodeContext &c, const Val &x, const Val &v) {
  if (!v) return {};
  if (v.rank() == 0 || v.type().getNumElements() == 1) return c.e.reshape(v, {});
  int64_t axis = c.dimension(c.integer("axis", 1), x.rank());
  if (axis < 0) return {};
  if (v.rank() != 1 || v.dim(0) != x.dim(axis)) return c.e.fail("its scales do not fit the axis");
  Ints shape(x.rank(), 1);
  shape[axis] = v.dim(0);
  return c.e.reshape(v, shape);
}

/// Scales are settings of the model, or what it measures of numbers; in PyTorch they have no gradient.
Val scaleOf(NodeContext &c) {
  Val scale = c.inputs[1];
  if (auto known = c.importer.known(scale, c.e)) return Val(*known);
  return c.e.unary<nn::DetachOp>(scale);
}

/// round(x / scale) + zero point, within the range of the type. Beside the integers stands what a number is that is made of them: with
/// the gradient of x inside the range, as exporters mean it who write fake_quantize so.
Vals quantize(NodeContext &c) {
  if (!c.only({"axis", "saturate", "block_size", "output_dtype", "precision"})) return {};
  Val x = c.in(0), scale = c.in(1), zero = c.optional(2);
  if (!x || !scale) return {};
  if (c.integer("block_size", 0)) return c.fail("scales of blocks are not supported");
  Type type = zero ? zero.integer : Type(c.integer("output_dtype", int64_t(Type::UInt8)));
  if (type != Type::UInt8 && type != Type::Int8 && type != Type::UInt16 && type != Type::Int16)
    return c.fail("it makes " + name(type) + ", and integers of 8 or 16 bits are supported");
  double span = std::ldexp(1.0, 8 * int(sizeOf(type))), low = unsignedBitsOf(type) ? 0 : -span / 2, high = low + span - 1;
  Val steps = c.e.div(x, along(c, x, scaleOf(c)));
  Val number = c.e.add(steps, c.e.unary<nn::DetachOp>(c.e.sub(rounded(c, steps), steps)));
  if (zero) number = c.e.add(number, along(c, x, c.e.convert(zero, c.e.f32())));
  number = within<nn::Predicate::lt>(c, number, like(c, low, number));
  number = within<nn::Predicate::gt>(c, number, like(c, high, number));
  Val integer = c.e.convert(number, elementType(type, c.e.context()));
  integer.integer = type;
  c.importer.noteQuantized(integer, number);
  return {integer};
}

/// Whether integers are made of a quantizer's by what has no gradient.
bool isComputed(NodeContext &c, mlir::Value integers) {
  llvm::SmallVector<mlir::Value> next{integers};
  llvm::DenseSet<mlir::Value> seen;
  while (!next.empty()) {
    mlir::Value v = next.pop_back_val();
    if (c.importer.numberBehind(v)) return true;
    if (mlir::Operation *op = v.getDefiningOp())
      for (mlir::Value o : op->getOperands())
        if (mlir::getElementTypeOrSelf(o).isInteger() && seen.insert(o).second) next.push_back(o);
  }
  return false;
}

/// (x - zero point) * scale.
Vals dequantize(NodeContext &c) {
  if (!c.only({"axis", "block_size", "output_dtype"})) return {};
  Val x = c.in(0), scale = c.in(1), zero = c.optional(2);
  if (!x || !scale) return {};
  if (c.integer("block_size", 0)) return c.fail("scales of blocks are not supported");
  if (x.isFloat() || scale.rank() > 1) return c.fail("it makes numbers of integers, with one scale for all or a vector of them");
  Val numbers = c.importer.numberBehind(x);
  if (!numbers && x.value && isComputed(c, x.value))
    return c.fail("its integers were computed with since they were quantized, through which no gradient goes; QuantizeLinear and "
                  "DequantizeLinear one after the other, with a Clip between them at most, are supported");
  if (numbers)
    scale = scaleOf(c);
  else
    numbers = c.e.convert(x, c.e.f32());
  if (zero) numbers = c.e.sub(numbers, along(c, x, c.e.convert(zero, c.e.f32())));
  return {c.e.mul(numbers, along(c, x, scale))};
}

Vals refused(NodeContext &c) {
  return c.fail("it makes or multiplies the integers of a quantized model, which is not supported; compile the model as it was before, or "
                "with fake_quantize");
}

} // namespace

void registerQuantization(Registry &r) {
  r["QuantizeLinear"] = {quantize, 10};
  r["DequantizeLinear"] = {dequantize, 10};
  for (const char *op : {"DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"}) r[op] = {refused, 10};
}

} // namespace zero::onnx

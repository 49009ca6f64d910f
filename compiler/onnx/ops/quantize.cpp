//===- quantize.cpp - numbers from small integers ----------------------------------------------------===//
#include "compiler/onnx/importer.h"

namespace zero::onnx {
namespace {

/// (x - zero point) * scale, one scale for all or one for each slice along `axis`.
Vals dequantize(NodeContext &c) {
  if (!c.only({"axis", "block_size", "output_dtype"})) return {};
  Val x = c.in(0), scale = c.in(1), zero = c.optional(2);
  if (!x || !scale) return {};
  if (c.integer("block_size", 0)) return c.fail("scales of blocks are not supported");
  if (x.isFloat() || scale.rank() > 1) return c.fail("it makes numbers of integers, with one scale for all or a vector of them");
  auto along = [&](const Val &v) {
    if (v.rank() == 0 || v.type().getNumElements() == 1) return c.e.reshape(v, {});
    int64_t axis = c.dimension(c.integer("axis", 1), x.rank());
    if (axis < 0) return Val();
    if (v.rank() != 1 || v.dim(0) != x.dim(axis)) return c.e.fail("its scales do not fit the axis");
    Ints shape(x.rank(), 1);
    shape[axis] = v.dim(0);
    return c.e.reshape(v, shape);
  };
  Val numbers = c.e.convert(x, c.e.f32());
  if (zero) numbers = c.e.sub(numbers, along(c.e.convert(zero, c.e.f32())));
  return {c.e.mul(numbers, along(scale))};
}

Vals refused(NodeContext &c) {
  return c.fail("it makes or multiplies the integers of a quantized model, which is not supported, nor is quantization that is trained "
                "(fake_quantize); compile the model as it was before");
}

} // namespace

void registerQuantization(Registry &r) {
  r["DequantizeLinear"] = {dequantize, 10};
  for (const char *op : {"QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"})
    r[op] = {refused, 10};
}

} // namespace zero::onnx

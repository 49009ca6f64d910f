//===- random.cpp - numbers drawn in the forward pass ----------------------------------------------===//
// As dropout's, they depend on the run's seed, the step and the sample, and an attribute `seed` of the node, which would draw the same ones
// in every step, is not read.
#include "compiler/onnx/ops/arithmetic.h"

namespace zero::onnx {
namespace {

Val drawn(NodeContext &c, const Val &like, bool normal) {
  int64_t id = c.importer.nextRandomId();
  c.importer.nextRandomId();
  return c.e.noise(like, c.importer.seed(), normal, id);
}

/// scale * noise + shift, by the node's attributes.
Val scaled(NodeContext &c, const Val &noise, bool normal) {
  double low = c.real("low", 0), high = c.real("high", 1);
  double scale = normal ? c.real("scale", 1) : high - low, shift = normal ? c.real("mean", 0) : low;
  Val x = scale == 1 ? noise : c.e.mul(noise, like(c, scale, noise));
  return shift == 0 ? x : c.e.add(x, like(c, shift, x));
}

/// The attribute "dtype", or `otherwise`; null after a report.
mlir::Type typeOf(NodeContext &c, mlir::Type otherwise) {
  if (!c.attribute("dtype")) return otherwise;
  Type type = Type(c.integer("dtype", 0));
  mlir::Type element = elementType(type, c.e.context());
  if (llvm::isa_and_nonnull<mlir::FloatType>(element)) return element;
  c.fail("numbers of type " + name(type) + " are not drawn");
  return {};
}

template <bool normal> Vals randomLike(NodeContext &c) {
  Val x = c.in(0);
  mlir::Type type = x ? typeOf(c, x.isFloat() ? x.element() : c.e.f32()) : mlir::Type();
  if (!type) return {};
  return {scaled(c, drawn(c, c.e.convert(x, type), normal), normal)};
}

template <bool normal> Vals random(NodeContext &c) {
  auto shape = c.ints("shape");
  if (!shape) return c.fail("its attribute 'shape' is missing");
  mlir::Type type = typeOf(c, c.e.f32());
  if (!type) return {};
  return {scaled(c, drawn(c, c.e.full(*shape, 0, type), normal), normal)};
}

/// 1 with the probability that x is.
Vals bernoulli(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  if (!x.isFloat()) return c.fail("it is supported for floats only");
  mlir::Type type = x.element();
  if (c.attribute("dtype")) type = elementType(Type(c.integer("dtype", 0)), c.e.context());
  if (!type) return c.fail("dtype " + name(Type(c.integer("dtype", 0))) + " is not supported");
  return {c.e.convert(c.e.compare(nn::Predicate::lt, drawn(c, x, false), x), type)};
}

} // namespace

void registerRandom(Registry &r) {
  r["RandomNormalLike"] = {randomLike<true>};
  r["RandomUniformLike"] = {randomLike<false>};
  r["RandomNormal"] = {random<true>};
  r["RandomUniform"] = {random<false>};
  r["Bernoulli"] = {bernoulli, 15};
}

} // namespace zero::onnx

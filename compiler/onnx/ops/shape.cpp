//===- shape.cpp - shapes, constants and tensors made of indices ---------------------------------===//
#include "compiler/onnx/importer.h"
#include <cmath>

namespace zero::onnx {
namespace {

Vals shape(NodeContext &c) {
  Val x = c.in(0);
  if (!x || x.sequence) return {};
  auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + x.rank() : v, 0, x.rank()); };
  int64_t from = place(c.integer("start", 0)), to = place(c.integer("end", x.rank()));
  return {c.e.ints(x.shape().slice(from, std::max<int64_t>(0, to - from)))};
}

Vals size(NodeContext &c) {
  Val x = c.in(0);
  return {x ? c.e.scalar(double(x.type().getNumElements()), c.e.i64()) : Val()};
}

Vals constant(NodeContext &c) {
  if (auto *a = c.attribute("value")) {
    if (!a->tensor) return c.fail("its value is no tensor");
    return {c.importer.constant(*a->tensor, c.e)};
  }
  if (auto *a = c.attribute("value_float")) return {c.e.scalar(a->f, c.e.f32())};
  if (auto *a = c.attribute("value_int")) {
    nn::Tensor t(mlir::RankedTensorType::get({}, c.e.i64()));
    t.data<int64_t>()[0] = a->i;
    return {Val(std::move(t))};
  }
  if (auto *a = c.attribute("value_ints")) return {c.e.ints(a->ints)};
  if (auto *a = c.attribute("value_floats")) {
    nn::Tensor t(mlir::RankedTensorType::get({int64_t(a->floats.size())}, c.e.f32()));
    llvm::copy(a->floats, t.data<float>().begin());
    return {Val(std::move(t))};
  }
  return c.fail("it holds no tensor, number or list of numbers");
}

Vals constantOfShape(NodeContext &c) {
  auto dims = c.knownInts(0);
  if (!dims) return {};
  Val value = c.e.scalar(0, c.e.f32());
  if (auto *a = c.attribute("value")) {
    if (!a->tensor || a->tensor->elements != 1) return c.fail("its value is no tensor of one element");
    value = c.e.reshape(c.importer.constant(*a->tensor, c.e), {});
  }
  return {c.e.broadcastTo(value, *dims)};
}

Vals range(NodeContext &c) {
  auto start = c.known(0), limit = c.known(1), delta = c.known(2);
  if (!start || !limit || !delta) return {};
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1) return c.fail("its start, limit and step are not single numbers");
  double from = start->at(0), to = limit->at(0), by = delta->at(0);
  if (by == 0) return c.fail("its step is 0");
  double n = std::max(0.0, std::ceil((to - from) / by));
  if (!(n < double(1 << 28))) return c.fail("it has too many elements");
  if (!c.e.affords({int64_t(n)}, start->elementType())) return {};
  nn::Tensor t(mlir::RankedTensorType::get({int64_t(n)}, start->elementType()));
  for (int64_t i = 0; i < int64_t(n); ++i) t.set(i, from + double(i) * by);
  return {Val(std::move(t))};
}

/// row + k ? column over the last two dimensions, as a known tensor.
Val triangle(NodeContext &c, int64_t rows, int64_t columns, int64_t k, nn::Predicate predicate) {
  k = std::clamp(k, -rows, columns); // further out nothing changes
  Val row = c.e.iota({rows, columns}, 0, c.e.i64()), column = c.e.iota({rows, columns}, 1, c.e.i64());
  return c.e.compare(predicate, column, c.e.add(row, c.e.scalar(double(k), c.e.i64())));
}

Vals trilu(NodeContext &c) {
  Val x = c.in(0);
  if (!x || x.rank() < 2) return c.fail("it needs a matrix");
  int64_t k = 0;
  if (c.has(1)) {
    auto t = c.known(1);
    if (!t || t->size() != 1) return c.fail("its diagonal is no single number");
    k = t->integer(0);
  }
  bool upper = c.integer("upper", 1);
  Val keep = triangle(c, x.dim(x.rank() - 2), x.dim(x.rank() - 1), k, upper ? nn::Predicate::ge : nn::Predicate::le);
  return {c.e.select(keep, x, c.e.scalar(0, x.element()))};
}

Vals eyeLike(NodeContext &c) {
  Val x = c.in(0);
  if (!x || x.rank() != 2) return c.fail("it needs a matrix");
  mlir::Type element = c.attribute("dtype") ? elementType(Type(c.integer("dtype", 1)), c.e.context()) : x.element();
  if (!element) return c.fail("its element type is not read");
  return {c.e.convert(triangle(c, x.dim(0), x.dim(1), c.integer("k", 0), nn::Predicate::eq), element)};
}

Vals oneHot(NodeContext &c) {
  Val indices = c.in(0);
  auto depth = c.known(1), values = c.known(2);
  if (!indices || !depth || !values) return {};
  if (depth->size() != 1) return c.fail("its depth is no single number");
  int64_t n = depth->integer(0);
  if (n <= 0 || n > 1 << 28 || values->size() != 2) return c.fail("its depth or values are out of range");
  int64_t axis = c.dimension(c.integer("axis", -1), indices.rank() + 1);
  if (axis < 0) return {};
  Ints column(indices.shape().begin(), indices.shape().end()), along(indices.rank() + 1, 1), shape = column;
  column.insert(column.begin() + axis, 1);
  shape.insert(shape.begin() + axis, n);
  along[axis] = n;
  Val at = c.e.reshape(c.e.convert(indices, c.e.i64()), column);
  Val wrapped = c.e.select(c.e.compare(nn::Predicate::lt, at, c.e.scalar(0, c.e.i64())), c.e.add(at, c.e.scalar(double(n), c.e.i64())), at);
  Val hit = c.e.compare(nn::Predicate::eq, wrapped, c.e.iota(along, axis, c.e.i64()));
  mlir::Type element = values->elementType();
  return {c.e.select(hit, c.e.scalar(values->at(1), element), c.e.scalar(values->at(0), element))};
}

} // namespace

void registerShape(Registry &r) {
  r["Shape"] = {shape};
  r["Size"] = {size};
  r["Constant"] = {constant};
  r["ConstantOfShape"] = {constantOfShape};
  r["Range"] = {range, 11};
  r["Trilu"] = {trilu, 14};
  r["EyeLike"] = {eyeLike};
  r["OneHot"] = {oneHot};
}

} // namespace zero::onnx

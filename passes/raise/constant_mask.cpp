//===- constant_mask.cpp - what a constant mask says -----------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/raise/masks.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

constexpr int64_t kLimit = int64_t(1) << 26; // elements

} // namespace

std::optional<ConstantMask> ConstantMask::of(Value v) {
  auto select = v.getDefiningOp<SelectOp>();
  auto onTrue = select ? splatOf(select.getOnTrue()) : std::nullopt, onFalse = select ? splatOf(select.getOnFalse()) : std::nullopt;
  bool choices = onTrue && onFalse;
  auto cells = constantOf(choices ? select.getCondition() : v, kLimit);
  if (!cells || cells->size() == 0) return std::nullopt;
  ConstantMask mask;
  mask.choices = choices;
  mask.onTrue = float(onTrue.value_or(0)), mask.onFalse = float(onFalse.value_or(0));
  mask.shape.assign(cells->shape().begin(), cells->shape().end());
  mask.cells = choices ? std::move(cells->bytes) : cells->cast(Float32Type::get(v.getContext())).bytes;
  mask.dropEqual();
  return mask;
}

std::optional<ConstantMask> ConstantMask::ofCondition(Value v, bool seen) {
  auto cells = constantOf(v, kLimit);
  if (!cells || cells->size() == 0) return std::nullopt;
  ConstantMask mask;
  mask.choices = true;
  (seen ? mask.onFalse : mask.onTrue) = kHides;
  mask.shape.assign(cells->shape().begin(), cells->shape().end());
  mask.cells = std::move(cells->bytes);
  mask.dropEqual();
  return mask;
}

bool ConstantMask::isZero() const {
  for (int64_t i = 0, n = ShapedType::getNumElements(shape); i < n; ++i)
    if (at(i) != 0) return false;
  return true;
}

bool ConstantMask::seesTriangle(int64_t queries, int64_t keys) const {
  return keys >= queries && sees({1 - queries, keys - queries}, queries, keys);
}

std::optional<Band> ConstantMask::band(int64_t queries, int64_t keys) const {
  if (!isOfPositions(queries, keys)) return std::nullopt;
  auto seen = [&](int64_t i, int64_t j) { return at(i * keys + j) == 0; };
  int64_t first = 0, last = keys - 1; // that the last query sees, and that the first one does
  while (first < keys && !seen(queries - 1, first)) ++first;
  while (last >= 0 && !seen(0, last)) --last;
  Band band{first - (queries - 1), last};
  if (first == keys || !band.reachesAll(queries, keys) || !sees(band, queries, keys) || !hidesOutside(band, queries, keys))
    return std::nullopt;
  return band;
}

Tensor ConstantMask::tensor(MLIRContext *context) const {
  Tensor result(RankedTensorType::get(shape, Float32Type::get(context)));
  for (int64_t i = 0; i < result.size(); ++i) result.data<float>()[i] = at(i);
  return result;
}

bool ConstantMask::isOfPositions(int64_t queries, int64_t keys) const {
  return shape[0] == 1 && shape[1] == 1 && shape[2] == queries && shape[3] == keys;
}

bool ConstantMask::sees(Band band, int64_t queries, int64_t keys) const {
  if (!isOfPositions(queries, keys)) return false;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = std::max<int64_t>(i + band.first, 0); j <= std::min(i + band.last, keys - 1); ++j)
      if (at(i * keys + j) != 0) return false;
  return true;
}

bool ConstantMask::hidesOutside(Band band, int64_t queries, int64_t keys) const {
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j)
      if ((j < i + band.first || j > i + band.last) && !(at(i * keys + j) <= kHides)) return false;
  return true;
}

void ConstantMask::dropEqual() {
  for (int d = 0; d < 4; ++d) dropEqual(d);
}

void ConstantMask::dropEqual(int d) {
  if (shape[d] == 1) return;
  int64_t slice = choices ? 1 : sizeof(float);
  for (int i = d + 1; i < 4; ++i) slice *= shape[i];
  int64_t run = slice * shape[d], size = int64_t(cells.size());
  for (int64_t base = 0; base < size; base += run)
    for (int64_t k = slice; k < run; k += slice)
      if (std::memcmp(cells.data() + base, cells.data() + base + k, slice) != 0) return;
  for (int64_t r = 1; r < size / run; ++r) std::memmove(cells.data() + r * slice, cells.data() + r * run, slice);
  cells.resize(size / shape[d]);
  shape[d] = 1;
}

} // namespace zero::raise

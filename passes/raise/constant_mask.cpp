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
  return ConstantMask(choices ? std::move(*cells) : cells->cast(Float32Type::get(v.getContext())), choices, float(onTrue.value_or(0)),
                      float(onFalse.value_or(0)));
}

std::optional<ConstantMask> ConstantMask::ofCondition(Value v, bool seen) {
  auto cells = constantOf(v, kLimit);
  if (!cells || cells->size() == 0) return std::nullopt;
  return ConstantMask(std::move(*cells), true, seen ? 0 : kHides, seen ? kHides : 0);
}

bool ConstantMask::isZero() const {
  for (int64_t i = 0, n = ShapedType::getNumElements(shape); i < n; ++i)
    if (at(i) != 0) return false;
  return true;
}

std::optional<float> ConstantMask::number() const {
  std::optional<float> found;
  for (int64_t i = 0, n = ShapedType::getNumElements(shape); i < n; ++i) {
    if (at(i) == 0) continue;
    if (found && *found != at(i)) return std::nullopt;
    found = at(i);
  }
  return found;
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

} // namespace zero::raise

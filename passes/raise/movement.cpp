//===- movement.cpp - elements followed through what moves them ---------------------------------------===//
#include "passes/raise/movement.h"
#include "passes/raise/match.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {

/// Indices that are looked at one by one, at most.
static constexpr int64_t kMostIndices = 1 << 20;

bool Movement::follow(Value &v, Indices &at) {
  auto op = v.getDefiningOp<IndexedOpInterface>();
  if (!op) return false;
  auto gather = dyn_cast<GatherOp>(op.getOperation());
  lookedUp = gather ? gather.getIndices() : Value();
  if ((op->getNumOperands() != 1 && !gather) || op.read(*this, at).id < 0) return false;
  v = op->getOperand(0), at = from;
  return true;
}

std::optional<Index> Movement::indexFrom(unsigned, ArrayRef<Index> at, int64_t size) {
  auto [entry, isNew] = constants.try_emplace(lookedUp);
  if (isNew && isConstant(lookedUp))
    if (auto known = constantOf(lookedUp, kMostIndices)) entry->second = known->integers();
  const std::vector<int64_t> &table = entry->second;
  Index linear = indices.linearize(at, shapeOf(lookedUp)), affine;
  auto [low, high] = indices.range(linear);
  if (low < 0 || high >= int64_t(table.size())) return std::nullopt;
  // Each atom's step from where all are 0; then all indices are asked whether they keep to it.
  affine.constant = table[linear.constant];
  int64_t all = 1;
  for (const nn::Term &term : linear.terms) {
    int64_t sizeOf = indices.atoms[term.atom].size;
    if (sizeOf > 1) affine = affine + Index::atom(term.atom, table[linear.constant + term.scale] - affine.constant);
    if ((all *= sizeOf) > kMostIndices) return std::nullopt;
  }
  for (int64_t i = 0; i < all; ++i) {
    int64_t rest = i, place = linear.constant, expected = affine.constant;
    for (const nn::Term &term : linear.terms) {
      int64_t n = rest % indices.atoms[term.atom].size;
      rest /= indices.atoms[term.atom].size;
      place += n * term.scale, expected += n * affine.scaleOf(term.atom);
    }
    if (table[place] != expected) return std::nullopt;
  }
  auto [first, last] = indices.range(affine);
  return first >= 0 && last < size ? std::optional(affine) : std::nullopt;
}

} // namespace zero::raise

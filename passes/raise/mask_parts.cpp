//===- mask_parts.cpp - what a mask hides whatever the data says ------------------------------------===//
// Exporters write one mask of all that hides: a causal triangle or a window, which the file holds as a constant, and the padding of
// samples, which the data says. As conjunctions and sums of both they are taken apart here.
#include "compiler/nn/build.h"
#include "passes/raise/masks.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

class Parts {
public:
  Parts(Value mask, int64_t queries, int64_t keys) : builder(atDefinition(mask)), b{builder, mask.getLoc()}, queries(queries), keys(keys) {}

  std::optional<Band> band;

  /// The number that everything hidden has added, where the mask is nothing but choices between one number and none.
  std::optional<float> number() const { return one ? hidden : std::nullopt; }

  /// What `mask` adds to scores of the band; null for nothing.
  Value restOf(Value mask) {
    Value v = narrowed(mask, b);
    if (splatOf(v) == 0.0) return {}; // however large
    if (!budget.take()) return other(v);
    if (auto add = v.getDefiningOp<AddOp>()) return other(joined<AddOp>(restOf(add.getLhs()), restOf(add.getRhs())));
    auto select = v.getDefiningOp<SelectOp>();
    bool seen = select && !hides(select.getOnTrue()); // where the condition holds
    if (!select || !hides(seen ? select.getOnFalse() : select.getOnTrue())) {
      auto constant = ConstantMask::of(v);
      if (constant && constant->isZero()) return {};
      if (!constant || !keep(constant->band(queries, keys))) return other(v);
      return hideBy(constant->number()), Value();
    }
    hideBy(splatOf(seen ? select.getOnFalse() : select.getOnTrue()));
    Value rest = restOf(seen ? select.getOnTrue() : select.getOnFalse());
    Value condition = conditionOf(select.getCondition(), seen);
    if (!condition) return rest;
    auto type = withElement(condition, elementOf(v));
    Value nothing = b.splat(type, 0), low = b.splat(type, *splatOf(seen ? select.getOnFalse() : select.getOnTrue()));
    return joined<AddOp>(b.select(condition, nothing, low), rest);
  }

private:
  OpBuilder builder;
  Build b;
  int64_t queries, keys;
  Budget budget;
  std::optional<float> hidden;
  bool one = true; // such a choice is all there was so far

  void hideBy(std::optional<float> number) {
    one = one && number && (!hidden || *hidden == *number);
    hidden = number;
  }
  Value other(Value v) { return one = false, v; }

  static OpBuilder atDefinition(Value v) {
    OpBuilder builder(v.getContext());
    builder.setInsertionPointAfterValue(v);
    return builder;
  }

  static bool hides(Value v) {
    auto number = splatOf(v);
    return number && *number <= kHides;
  }

  /// Where keys of the band are seen, of a condition under which they are if `seen`, and else hidden; null for everywhere.
  Value conditionOf(Value condition, bool seen) {
    Value v = narrowed(condition, b);
    if (keep(bandOfPositions(v, seen, queries, keys))) return {};
    if (auto constant = ConstantMask::ofCondition(v, seen))
      if (constant->isZero() || keep(constant->band(queries, keys))) return {};
    Operation *op = budget.take() ? v.getDefiningOp() : nullptr;
    if (auto negation = dyn_cast_or_null<NotOp>(op)) return conditionOf(negation.getInput(), !seen);
    if (seen ? isa_and_nonnull<AndOp>(op) : isa_and_nonnull<OrOp>(op))
      return joined<AndOp>(conditionOf(op->getOperand(0), seen), conditionOf(op->getOperand(1), seen));
    return seen ? v : b.b.create<NotOp>(b.loc, v).getResult();
  }

  /// Of two values, each repeated where the other is larger; one alone if the other is null.
  template <typename Op> Value joined(Value x, Value y) {
    if (!x || !y) return x ? x : y;
    SmallVector<int64_t> shape;
    for (auto [m, n] : llvm::zip_equal(shapeOf(x), shapeOf(y))) shape.push_back(std::max(m, n));
    return builder.create<Op>(b.loc, b.broadcast(x, shape, {0, 1, 2, 3}), b.broadcast(y, shape, {0, 1, 2, 3}));
  }

  bool keep(std::optional<Band> found) {
    if (!found) return false;
    band = band ? Band{std::max(band->first, found->first), std::min(band->last, found->last)} : *found;
    return true;
  }
};

} // namespace

Value narrowed(Value v, Build b) {
  auto broadcast = v.getDefiningOp<BroadcastOp>();
  if (!broadcast) return v;
  SmallVector<int64_t> shape(4, 1);
  for (auto [size, d] : llvm::zip(shapeOf(broadcast.getInput()), broadcast.getDims())) shape[d] = size;
  return b.reshape(broadcast.getInput(), shape);
}

MaskParts takeApart(Value mask, int64_t queries, int64_t keys) {
  Parts parts(mask, queries, keys);
  Value rest = parts.restOf(mask);
  if (!parts.band || !parts.band->reachesAll(queries, keys)) return {std::nullopt, mask, std::nullopt};
  return {parts.band, rest, parts.number()};
}

} // namespace zero::raise

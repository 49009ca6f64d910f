//===- positions.cpp - conditions that compare positions --------------------------------------------===//
// Of long sequences the condition under which a query sees a key has too many elements to be looked at one by one. Exporters write it as
// comparisons of numbers that are affine in the positions of query and key: "key <= query", "query - key < window".
#include "compiler/nn/build.h"
#include "passes/raise/masks.h"
#include "passes/raise/movement.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

class Positions {
public:
  Positions(ArrayRef<int64_t> shape, int64_t queries, int64_t keys) : all{1 - queries, keys - 1} {
    for (int64_t size : shape) at.push_back(size > 1 ? Index::atom(space.dim(size, 0, 0)) : Index(0));
    // Of a condition that is the same for all queries, or for all keys, no element knows the position.
    query = shape[2] == queries ? at[2] : Index::atom(space.dim(queries, 0, 0));
    key = shape[3] == keys ? at[3] : Index::atom(space.dim(keys, 0, 0));
  }

  Indices at; // any element of a condition of this shape

  /// Where `condition` holds, or if not `holds`, does not, at an element of it.
  std::optional<Band> band(Value condition, Indices at, bool holds) {
    if (!budget.take()) return std::nullopt;
    if (auto number = splatOf(condition)) return (*number != 0) == holds ? std::optional(all) : std::nullopt;
    if (movement.follow(condition, at)) return band(condition, at, holds);
    Operation *op = condition.getDefiningOp();
    if (auto negation = dyn_cast_or_null<NotOp>(op)) return band(negation.getInput(), at, !holds);
    if (holds ? isa_and_nonnull<AndOp>(op) : isa_and_nonnull<OrOp>(op))
      return both(band(op->getOperand(0), at, holds), band(op->getOperand(1), at, holds));
    auto compare = dyn_cast_or_null<CompareOp>(op);
    return compare ? compared(compare, at, holds) : std::nullopt;
  }

private:
  Band all;
  Budget budget;
  Space space;
  Movement movement{space};
  Index query, key;

  static std::optional<Band> both(std::optional<Band> x, std::optional<Band> y) {
    if (!x || !y) return std::nullopt;
    return Band{std::max(x->first, y->first), std::min(x->last, y->last)};
  }

  std::optional<Band> compared(CompareOp compare, Indices at, bool holds) {
    Value x = compare.getLhs(), y = compare.getRhs();
    bool strict = false; // x < y, or x <= y
    switch (compare.getPredicate()) {
    case Predicate::lt:
    case Predicate::le:
      strict = compare.getPredicate() == Predicate::lt;
      break;
    case Predicate::gt:
    case Predicate::ge:
      std::swap(x, y);
      strict = compare.getPredicate() == Predicate::gt;
      break;
    case Predicate::eq:
    case Predicate::ne: {
      auto left = affine(x, at), right = affine(y, at);
      if (!left || !right || holds != (compare.getPredicate() == Predicate::eq)) return std::nullopt;
      return both(below(*left - *right, false), below(*right - *left, false));
    }
    }
    if (!holds) std::swap(x, y), strict = !strict;
    Indices inside = at;
    while (movement.follow(x, inside)) {
    }
    auto distance = x.getDefiningOp<AbsOp>();
    auto left = affine(distance ? distance.getInput() : x, inside), right = affine(y, at);
    if (!left || !right) return std::nullopt;
    auto found = below(*left - *right, strict);
    return distance ? both(found, below(*left * -1 - *right, strict)) : found;
  }

  /// Where d < 0, or d <= 0 if not `strict`: a bound of the distance j - i of key j from query i.
  std::optional<Band> below(const Index &d, bool strict) const {
    int64_t bound = -d.constant - strict; // rest <= bound
    Index rest = d - Index(d.constant);
    if (rest.isConstant()) return bound >= 0 ? std::optional(all) : std::nullopt;
    int64_t scale = key.isConstant() ? 0 : rest.scaleOf(key.terms[0].atom);
    if (scale == 0 || !(rest == (key - query) * scale)) return std::nullopt;
    Band found = all;
    if (scale > 0)
      found.last = std::min(all.last, llvm::divideFloorSigned(bound, scale));
    else
      found.first = std::max(all.first, llvm::divideCeilSigned(bound, scale));
    return found;
  }

  /// The element of a value at these indices, where it is affine in them.
  std::optional<Index> affine(Value v, Indices at) {
    if (!budget.take()) return std::nullopt;
    while (movement.follow(v, at)) {
    }
    if (auto number = splatOf(v)) return whole(*number);
    Operation *made = v.getDefiningOp();
    if (!made) return std::nullopt; // by nobody: data
    return llvm::TypeSwitch<Operation *, std::optional<Index>>(made)
        .Case<AddOp, SubOp>([&](auto op) -> std::optional<Index> {
          auto x = affine(op.getLhs(), at), y = affine(op.getRhs(), at);
          if (!x || !y) return std::nullopt;
          return isa<SubOp>(op) ? *x - *y : *x + *y;
        })
        .Case([&](NegOp op) -> std::optional<Index> {
          auto x = affine(op.getInput(), at);
          return x ? std::optional(*x * -1) : std::nullopt;
        })
        .Case([&](CastOp op) -> std::optional<Index> { // of whole numbers that both types hold
          auto holds = [](Value number) { return elementOf(number).isSignlessInteger(32) || elementOf(number).isSignlessInteger(64); };
          return holds(op.getInput()) && holds(op) ? affine(op.getInput(), at) : std::nullopt;
        })
        .Case([&](IotaOp op) -> std::optional<Index> { return at[op.getDim()]; })
        .Default([&](Operation *) { return ofConstant(v, at); });
  }

  static std::optional<Index> whole(double number) {
    if (number != std::floor(number) || std::abs(number) > 1e15) return std::nullopt;
    return Index(int64_t(number));
  }

  static std::optional<Index> ofConstant(Value v, ArrayRef<Index> at) {
    auto tensor = constantOf(v);
    if (!tensor || tensor->size() == 0) return std::nullopt;
    auto result = whole(tensor->at(0));
    if (!result) return std::nullopt;
    auto shape = tensor->shape();
    SmallVector<int64_t> steps(shape.size(), 0);
    int64_t first = result->constant;
    for (int64_t d = int64_t(shape.size()) - 1, stride = 1; d >= 0; stride *= shape[d--]) {
      auto next = shape[d] > 1 ? whole(tensor->at(stride)) : Index(first);
      if (!next) return std::nullopt;
      steps[d] = next->constant - first;
      *result = *result + at[d] * steps[d];
    }
    for (int64_t i = 0; i < tensor->size(); ++i) {
      int64_t expected = first;
      for (int64_t d = int64_t(shape.size()) - 1, rest = i; d >= 0; rest /= shape[d--]) expected += rest % shape[d] * steps[d];
      if (tensor->at(i) != double(expected)) return std::nullopt;
    }
    return result;
  }
};

} // namespace

std::optional<Band> bandOfPositions(Value condition, bool seen, int64_t queries, int64_t keys) {
  Positions positions(shapeOf(condition), queries, keys);
  return positions.band(condition, positions.at, seen);
}

} // namespace zero::raise

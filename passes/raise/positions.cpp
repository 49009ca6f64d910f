//===- positions.cpp - conditions that compare positions --------------------------------------------===//
// Of long sequences the condition under which a query sees a key has too many elements to be looked at one by one. Exporters write it as
// comparisons of what grows evenly along queries and along keys: "key <= query", "query - key < window".
#include "compiler/nn/build.h"
#include "passes/raise/masks.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

/// What a dimension of a value goes along.
enum class Axis { None, Query, Key };
using Axes = SmallVector<Axis, 4>;

/// query · i + key · j + offset at query i and key j.
struct Even {
  double query = 0, key = 0, offset = 0;

  double &along(Axis axis) { return axis == Axis::Query ? query : key; }
};
Even sum(Even x, Even y, double factor) { return {x.query + factor * y.query, x.key + factor * y.key, x.offset + factor * y.offset}; }

class Positions {
public:
  Positions(int64_t queries, int64_t keys) : all{1 - queries, keys - 1} {}

  /// Where `condition` holds, or if not `holds`, does not.
  std::optional<Band> band(Value condition, Axes axes, bool holds) {
    if (!budget.take()) return std::nullopt;
    if (auto number = splatOf(condition)) return (*number != 0) == holds ? std::optional(all) : std::nullopt;
    if (below(condition, axes)) return band(condition, axes, holds);
    Operation *op = condition.getDefiningOp();
    if (auto negation = dyn_cast_or_null<NotOp>(op)) return band(negation.getInput(), axes, !holds);
    if (holds ? isa_and_nonnull<AndOp>(op) : isa_and_nonnull<OrOp>(op))
      return both(band(op->getOperand(0), axes, holds), band(op->getOperand(1), axes, holds));
    auto compare = dyn_cast_or_null<CompareOp>(op);
    if (!compare) return std::nullopt;
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
      auto left = even(x, axes), right = even(y, axes);
      if (!left || !right || holds != (compare.getPredicate() == Predicate::eq)) return std::nullopt;
      Even d = sum(*left, *right, -1);
      return both(less(d, false), less(sum({}, d, -1), false));
    }
    }
    if (!holds) std::swap(x, y), strict = !strict;
    Axes inside = axes;
    while (below(x, inside)) {
    }
    if (auto distance = x.getDefiningOp<AbsOp>()) {
      auto d = even(distance.getInput(), inside), limit = even(y, axes);
      return d && limit ? both(less(sum(*d, *limit, -1), strict), less(sum(sum({}, *d, -1), *limit, -1), strict)) : std::nullopt;
    }
    auto left = even(x, inside), right = even(y, axes);
    return left && right ? less(sum(*left, *right, -1), strict) : std::nullopt;
  }

private:
  Band all;
  Budget budget;

  static std::optional<Band> both(std::optional<Band> x, std::optional<Band> y) {
    if (!x || !y) return std::nullopt;
    return Band{std::max(x->first, y->first), std::min(x->last, y->last)};
  }

  /// Where d < 0, or d <= 0 if not `strict`.
  std::optional<Band> less(Even d, bool strict) const {
    if (d.query != -d.key) return std::nullopt;
    if (d.key == 0) return (strict ? d.offset < 0 : d.offset <= 0) ? std::optional(all) : std::nullopt;
    double bound = -d.offset / d.key; // of the distance j - i
    if (std::abs(bound) > 1e15) return std::nullopt;
    Band found = all;
    if (d.key > 0)
      found.last = std::min(all.last, int64_t(strict ? std::ceil(bound) - 1 : std::floor(bound)));
    else
      found.first = std::max(all.first, int64_t(strict ? std::floor(bound) + 1 : std::ceil(bound)));
    return found;
  }

  /// From a value that only moves or repeats elements of another to that.
  static bool below(Value &v, Axes &axes) {
    Axes inner;
    Operation *op = v.getDefiningOp();
    if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
      for (auto [size, d] : llvm::zip(shapeOf(broadcast.getInput()), broadcast.getDims()))
        inner.push_back(size == shapeOf(v)[d] ? axes[d] : Axis::None);
    } else if (auto transpose = dyn_cast_or_null<TransposeOp>(op)) {
      inner.assign(axes.size(), Axis::None);
      for (auto [d, from] : llvm::enumerate(transpose.getPerm())) inner[from] = axes[d];
    } else if (isa_and_nonnull<ReshapeOp>(op)) { // that adds or takes dimensions of one element
      SmallVector<Axis> kept;
      SmallVector<int64_t> sizes;
      for (auto [size, axis] : llvm::zip(shapeOf(v), axes))
        if (size != 1) kept.push_back(axis), sizes.push_back(size);
      size_t next = 0;
      for (int64_t size : shapeOf(op->getOperand(0))) {
        if (size != 1 && (next == sizes.size() || sizes[next] != size)) return false;
        inner.push_back(size == 1 ? Axis::None : kept[next++]);
      }
    } else {
      return false;
    }
    v = op->getOperand(0), axes = inner;
    return true;
  }

  std::optional<Even> even(Value v, Axes axes) {
    if (!budget.take()) return std::nullopt;
    while (below(v, axes)) {
    }
    if (auto number = splatOf(v)) return Even{0, 0, *number};
    return llvm::TypeSwitch<Operation *, std::optional<Even>>(v.getDefiningOp())
        .Case<AddOp, SubOp>([&](auto op) -> std::optional<Even> {
          auto x = even(op.getLhs(), axes), y = even(op.getRhs(), axes);
          return x && y ? std::optional(sum(*x, *y, isa<SubOp>(op) ? -1 : 1)) : std::nullopt;
        })
        .Case([&](NegOp op) -> std::optional<Even> {
          auto x = even(op.getInput(), axes);
          return x ? std::optional(sum({}, *x, -1)) : std::nullopt;
        })
        .Case([&](CastOp op) -> std::optional<Even> { // of whole numbers that both types hold
          auto holds = [](Value number) { return elementOf(number).isSignlessInteger(32) || elementOf(number).isSignlessInteger(64); };
          return holds(op.getInput()) && holds(op) ? even(op.getInput(), axes) : std::nullopt;
        })
        .Case([&](IotaOp op) -> std::optional<Even> {
          Even result;
          if (int64_t d = op.getDim(); axes[d] != Axis::None)
            result.along(axes[d]) = 1;
          else if (shapeOf(v)[d] > 1)
            return std::nullopt;
          return result;
        })
        .Default([&](Operation *) { return ofConstant(v, axes); });
  }

  static std::optional<Even> ofConstant(Value v, const Axes &axes) {
    auto tensor = constantOf(v);
    if (!tensor || tensor->size() == 0) return std::nullopt;
    auto shape = tensor->shape();
    Even result{0, 0, tensor->at(0)};
    SmallVector<double> steps(shape.size(), 0);
    for (int64_t d = int64_t(shape.size()) - 1, stride = 1; d >= 0; stride *= shape[d--])
      if (shape[d] > 1) {
        steps[d] = tensor->at(stride) - result.offset;
        if (steps[d] != 0 && axes[d] == Axis::None) return std::nullopt;
        if (steps[d] != 0) result.along(axes[d]) = steps[d];
      }
    for (int64_t i = 0; i < tensor->size(); ++i) {
      double expected = result.offset;
      for (int64_t d = int64_t(shape.size()) - 1, rest = i; d >= 0; rest /= shape[d--]) expected += double(rest % shape[d]) * steps[d];
      if (tensor->at(i) != expected) return std::nullopt;
    }
    return result;
  }
};

} // namespace

std::optional<Band> bandOfPositions(Value condition, bool seen, int64_t queries, int64_t keys) {
  return Positions(queries, keys).band(condition, {Axis::None, Axis::None, Axis::Query, Axis::Key}, seen);
}

} // namespace zero::raise

//===- choices.cpp - rows for which a number of the data is one of a few --------------------------------===//
#include "passes/raise/choices.h"
#include "compiler/nn/build.h"
#include "passes/raise/match.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

/// Numbers of a row that are asked, at most.
constexpr int64_t kMostNumbers = 16;

bool isZero(Value v) { return splatOf(v) == 0.0; }

/// The whole number that a constant has at an index; none where it depends on the index.
std::optional<int64_t> wholeAt(Value v, const Index &at) {
  if (auto number = splatOf(v)) return *number == double(int64_t(*number)) ? std::optional(int64_t(*number)) : std::nullopt;
  if (!v.getDefiningOp<ConstantOp>() || !at.isConstant()) return std::nullopt;
  auto numbers = constantOf(v);
  return numbers ? std::optional(numbers->integer(at.constant)) : std::nullopt;
}

} // namespace

Indices Choices::anywhere(ArrayRef<int64_t> shape) {
  Indices at;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (size == 1) {
      at.push_back(Index(0));
      continue;
    }
    auto [atom, isNew] = dims.try_emplace({d, size}, 0);
    if (isNew) atom->second = space.dim(size, 0, 0);
    at.push_back(Index::atom(atom->second));
  }
  return at;
}

std::pair<Value, Index> Choices::origin(Value v, Indices at) {
  while (movement.follow(v, at)) {
  }
  return {v, space.linearize(at, shapeOf(v))};
}

std::vector<Choice> Choices::of(Value mask) {
  found.clear();
  if (!find(mask, anywhere(shapeOf(mask)), {})) found.clear();
  return found;
}

bool Choices::find(Value v, Indices at, Choice so) {
  Operation *op = v.getDefiningOp();
  if (!op || so.path.size() > 32 || int64_t(found.size()) > kMostNumbers) return false;
  so.path.push_back(op);
  if (auto compare = dyn_cast<CompareOp>(op)) {
    Value x = compare.getLhs(), y = compare.getRhs();
    // Of zeros and ones, and sums of these: whether there is a one.
    if (compare.getPredicate() == Predicate::ne) return isZero(y) ? find(x, at, so) : isZero(x) && find(y, at, so);
    if (compare.getPredicate() == Predicate::gt) return isZero(y) && find(x, at, so);
    return compare.getPredicate() == Predicate::eq && (compared(x, y, at, so) || compared(y, x, at, so));
  }
  if (auto cast = dyn_cast<CastOp>(op)) return find(cast.getInput(), at, so);
  if (auto select = dyn_cast<SelectOp>(op)) { // ones and zeros
    auto one = splatOf(select.getOnTrue());
    return one && *one > 0 && isZero(select.getOnFalse()) && find(select.getCondition(), at, so);
  }
  if (isa<OrOp>(op)) return find(op->getOperand(0), at, so) && find(op->getOperand(1), at, so);
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (reduce.getKind() != ReductionKind::max && reduce.getKind() != ReductionKind::sum) return false;
    auto from = typeOf(reduce.getInput());
    int64_t many = 1;
    for (int64_t d : reduce.getDims()) many *= from.getDimSize(d);
    if (many > kMostNumbers) return false;
    for (int64_t i = 0; i < many; ++i) {
      SmallVector<int64_t> place(reduce.getDims().size());
      int64_t rest = i;
      for (size_t d = place.size(); d-- > 0; rest /= from.getDimSize(reduce.getDims()[d]))
        place[d] = rest % from.getDimSize(reduce.getDims()[d]);
      Indices inside = at;
      for (auto [d, p] : llvm::zip(reduce.getDims(), place)) inside.insert(inside.begin() + d, Index(p));
      Choice here = so;
      here.inReduced.push_back(place);
      if (!find(reduce.getInput(), inside, here)) return false;
    }
    return true;
  }
  return movement.follow(v, at) && find(v, at, so);
}

bool Choices::compared(Value v, Value with, Indices at, Choice so) {
  if (!isa<IntegerType>(elementOf(v))) return false;
  auto [constant, element] = origin(with, at);
  auto number = wholeAt(constant, element);
  if (!number) return false;
  std::tie(so.numbers, so.place) = origin(v, at);
  so.number = *number, so.compared = v;
  found.push_back(std::move(so));
  return true;
}

Value Choices::numbersOf(const Choice &choice, OpBuilder &b) {
  Value v = choice.compared;
  size_t reductions = choice.inReduced.size();
  for (Operation *op : llvm::reverse(choice.path)) {
    Build here{b, op->getLoc()};
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      auto shape = shapeOf(v);
      SmallVector<int64_t> starts(shape.size(), 0), sizes(shape), steps(shape.size(), 1);
      for (auto [d, place] : llvm::zip(reduce.getDims(), choice.inReduced[--reductions])) starts[d] = place, sizes[d] = 1;
      v = here.reshape(here.slice(v, starts, sizes, steps), shapeOf(reduce));
    } else if (op->hasTrait<nn::Movement>()) {
      SmallVector<Value> operands(op->getOperands());
      operands[0] = v;
      v = b.create(OperationState(op->getLoc(), op->getName(), operands, withElement(op->getResult(0), elementOf(v)), op->getAttrs()))
              ->getResult(0);
    }
  }
  return v;
}

} // namespace zero::raise

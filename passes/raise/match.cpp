//===- match.cpp - what the raising patterns ask of a value ---------------------------------------===//
#include "passes/raise/match.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

using Coefficients = std::array<double, 4>;

std::optional<Coefficients> multiply(const Coefficients &a, const Coefficients &b) {
  Coefficients result{};
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j)
      if (i + j < 4)
        result[i + j] += a[i] * b[j];
      else if (a[i] * b[j] != 0)
        return std::nullopt; // degree above three
  return result;
}

std::optional<Coefficients> polynomial(Value v, Value x, int depth) {
  if (v == x) return Coefficients{0, 1, 0, 0};
  if (auto number = splatOf(v)) return Coefficients{*number, 0, 0, 0};
  Operation *op = v.getDefiningOp();
  if (!op || depth == 0 || !isa<AddOp, SubOp, MulOp, DivOp, PowOp, NegOp>(op)) return std::nullopt;
  auto a = polynomial(op->getOperand(0), x, depth - 1);
  if (!a) return std::nullopt;
  if (isa<NegOp>(op)) return Coefficients{-(*a)[0], -(*a)[1], -(*a)[2], -(*a)[3]};
  if (isa<DivOp, PowOp>(op)) {
    auto number = splatOf(op->getOperand(1));
    if (!number) return std::nullopt;
    if (isa<DivOp>(op)) return multiply(*a, {1 / *number, 0, 0, 0});
    if (*number != 1 && *number != 2 && *number != 3) return std::nullopt;
    std::optional<Coefficients> power = a;
    for (int i = 1; power && i < int(*number); ++i) power = multiply(*power, *a);
    return power;
  }
  auto b = polynomial(op->getOperand(1), x, depth - 1);
  if (!b) return std::nullopt;
  if (isa<MulOp>(op)) return multiply(*a, *b);
  double sign = isa<SubOp>(op) ? -1 : 1;
  for (size_t i = 0; i < 4; ++i) (*a)[i] += sign * (*b)[i];
  return a;
}

constexpr int maxDepth = 8; ///< of a product that is taken apart

void collect(Value v, Value whole, Product &product, int depth) {
  if (auto number = splatOf(v)) {
    product.number *= *number;
  } else if (auto mul = v.getDefiningOp<MulOp>(); mul && v != whole && depth > 0) {
    collect(mul.getLhs(), whole, product, depth - 1);
    collect(mul.getRhs(), whole, product, depth - 1);
  } else if (auto div = v.getDefiningOp<DivOp>(); div && v != whole && depth > 0 && splatOf(div.getRhs())) {
    collect(div.getLhs(), whole, product, depth - 1);
    product.number /= *splatOf(div.getRhs());
  } else {
    product.factors.push_back(v);
  }
}

void collectParts(Value v, SmallVectorImpl<Value> &parts, int depth) {
  if (splatOf(v)) return;
  parts.push_back(v);
  if (Operation *op = v.getDefiningOp(); isa_and_nonnull<MulOp, DivOp>(op) && depth > 0)
    for (Value operand : op->getOperands()) collectParts(operand, parts, depth - 1);
}

} // namespace

bool isNear(double found, double expected, Type type) {
  double tolerance = type.isBF16() ? 4e-3 : type.isF16() ? 6e-4 : 2e-6;
  return std::abs(found - expected) <= tolerance * std::abs(expected);
}

Operation *onlyUser(Value v) { return v.hasOneUse() ? *v.user_begin() : nullptr; }

Value perRow(Value v) {
  auto broadcast = viewed(v).getDefiningOp<BroadcastOp>();
  if (!broadcast || typeOf(v).getRank() == 0) return nullptr;
  // After a reshape the rows must still be those of v.
  auto from = typeOf(broadcast.getInput()), to = typeOf(broadcast.getResult());
  int64_t columns = shapeOf(v).back(), last = to.getRank() - 1;
  if (to.getRank() == 0 || to.getDimSize(last) != columns || columns == 1 || from.getNumElements() * columns != to.getNumElements())
    return nullptr;
  if (llvm::is_contained(broadcast.getDims(), last) && from.getShape().back() != 1) return nullptr;
  return broadcast.getInput();
}

Value perColumn(Value v) {
  if (typeOf(v).getRank() == 0) return nullptr;
  int64_t columns = shapeOf(v).back();
  if (typeOf(v).getNumElements() == columns) return v;
  auto broadcast = viewed(v).getDefiningOp<BroadcastOp>();
  if (!broadcast) return nullptr;
  auto from = typeOf(broadcast.getInput()), to = typeOf(broadcast.getResult());
  if (to.getRank() == 0 || to.getShape().back() != columns || from.getRank() == 0 || from.getNumElements() != columns) return nullptr;
  if (broadcast.getDims().back() != to.getRank() - 1 || from.getShape().back() != columns) return nullptr;
  return broadcast.getInput();
}

Value meanOfRows(Value v) {
  v = viewed(v);
  Product product = factorsOf(v);
  if (product.factors.size() != 1) return nullptr;
  auto sum = viewed(product.factors[0]).getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReductionKind::sum) return nullptr;
  auto in = typeOf(sum.getInput());
  if (sum.getDims().size() != 1 || sum.getDims()[0] != in.getRank() - 1 ||
      !isNear(product.number * in.getShape().back(), 1, in.getElementType()))
    return nullptr;
  return sum.getInput();
}

std::optional<Coefficients> polynomialIn(Value v, Value x) { return polynomial(v, x, 12); }

Product factorsOf(Value v, Value whole) {
  Product product;
  collect(v, whole, product, maxDepth);
  return product;
}

SmallVector<Value> partsOf(Value v) {
  SmallVector<Value> parts;
  collectParts(v, parts, 3);
  return parts;
}

/// Whether `v`, or something that it is made of, is what is looked for.
static bool isMadeOf(Value v, llvm::function_ref<bool(Value)> wanted) {
  SmallVector<Value> work{v};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value at = work.pop_back_val();
    if (!seen.insert(at).second) continue;
    if (wanted(at)) return true;
    if (Operation *op = at.getDefiningOp()) llvm::append_range(work, op->getOperands());
  }
  return false;
}

bool dependsOnTrainable(Value v) {
  return isMadeOf(v, [](Value at) {
    auto get = at.getDefiningOp<GetOp>();
    if (!get) return false;
    auto parameter = SymbolTable::lookupNearestSymbolFrom<ParameterOp>(get, get.getParameterAttr());
    return !parameter || parameter.getTrainable();
  });
}

bool dependsOnSamples(Value v) {
  return isMadeOf(v, [](Value at) { return isa<BlockArgument>(at); });
}

std::optional<Tensor> constantOf(Value v, int64_t limit) {
  // What it is made of, operands first; then each once.
  llvm::SetVector<Operation *> order;
  SmallVector<Operation *> stack{v.getDefiningOp()};
  while (!stack.empty()) {
    Operation *op = stack.back();
    if (!op || !canEvaluate(op) || op->hasTrait<Draws>() ||
        llvm::any_of(op->getResults(), [&](Value r) { return typeOf(r).getNumElements() > limit; }))
      return std::nullopt;
    size_t before = stack.size();
    if (!order.contains(op))
      for (Value operand : op->getOperands())
        if (Operation *from = operand.getDefiningOp(); !from || !order.contains(from)) stack.push_back(from);
    if (stack.size() > before) continue;
    order.insert(op);
    stack.pop_back();
  }
  DenseMap<Operation *, unsigned> readers; // still to come
  for (Operation *op : order)
    for (Value operand : op->getOperands()) ++readers[operand.getDefiningOp()];
  DenseMap<Value, Tensor> known;
  for (Operation *op : order) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op->getOperands()) operands.push_back(&known.find(operand)->second);
    auto results = evaluate(op, operands);
    if (failed(results)) return std::nullopt;
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp(); --readers[from] == 0)
        for (Value r : from->getResults()) known.erase(r);
    for (auto [value, result] : llvm::zip(op->getResults(), *results)) known[value] = std::move(result);
  }
  return std::move(known.find(v)->second);
}

} // namespace zero::raise

//===- build_guards.cpp - values that are one thing here and another there -----------------------------===//
#include "compiler/codegen/builder.h"
#include "compiler/codegen/primitives.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::codegen {

int ProgramBuilder::choose(ArrayRef<Guard> all, Scalar type, function_ref<int()> inside, function_ref<int()> outside,
                           std::optional<Guard> otherwise) {
  SmallVector<Guard> needed;
  for (const Guard &g : all)
    if (auto simple = p.space.simplify(g)) needed.push_back(*simple);
  if (needed.empty()) return inside();
  size_t before = guards.size();
  for (const Guard &g : needed)
    if (!llvm::is_contained(guards, g)) guards.push_back(g);
  int a = inside();
  guards.truncate(before);
  int b = outside();
  if (a < 0 || b < 0) return -1;
  Node n(Node::Choose);
  n.type = type;
  n.operands = {a, b};
  n.guards.assign(needed.begin(), needed.end());
  if (otherwise)
    if (auto simple = p.space.simplify(*otherwise)) n.otherwise.push_back(*simple);
  return intern(n);
}

int ProgramBuilder::pad(PadOp op, const Indices &at) {
  Indices from;
  SmallVector<Guard> inside;
  auto shape = shapeOf(op.getInput());
  for (size_t i = 0; i < at.size(); ++i) {
    Index shifted = at[i] - Index(op.getLow()[i]);
    int64_t step = op.getInterior()[i] + 1, span = (shape[i] - 1) * step + 1;
    if (op.getLow()[i] || op.getHigh()[i] || step > 1) inside.push_back({shifted, 0, span, step});
    from.push_back(step == 1 ? shifted : p.space.quotient(shifted, step));
  }
  Scalar type = computed(scalarOf(op.getResult()));
  return choose(
      inside, type, [&] { return build(op.getInput(), from); },
      [&] {
        if (auto real = dyn_cast<FloatAttr>(op.getValue())) return constant(type, toDouble(real.getValue()));
        return whole(type, cast<IntegerAttr>(op.getValue()).getValue().getSExtValue() & (type == Scalar::Bool ? 1 : -1));
      });
}

int ProgramBuilder::concat(ConcatOp op, const Indices &at, unsigned first, unsigned end, int64_t start) {
  int64_t dim = op.getDim();
  auto sizeOf = [&](unsigned from, unsigned to) {
    int64_t sum = 0;
    for (unsigned i = from; i < to; ++i) sum += shapeOf(op.getInputs()[i])[dim];
    return sum;
  };
  auto within = [&](unsigned from, unsigned to) { return Guard{at[dim] - Index(start + sizeOf(first, from)), 0, sizeOf(from, to), 1}; };
  if (end - first == 1) {
    // The last piece is read under its own guard as well: where it does not hold an earlier piece was chosen.
    Indices from(at);
    from[dim] = at[dim] - Index(start);
    auto simple = p.space.simplify(within(first, end));
    size_t before = guards.size();
    if (simple && !llvm::is_contained(guards, *simple)) guards.push_back(*simple);
    int node = build(op.getInputs()[first], from);
    guards.truncate(before);
    return node;
  }
  // Few pieces one after another, many by halves: branches do not nest deep.
  unsigned middle = end - first <= kPiecesInARow ? first + 1 : first + (end - first) / 2;
  std::optional<Guard> rest;
  if (middle != first + 1 || end - middle == 1) rest = within(middle, end); // one piece, or many, but no others
  return choose(
      {within(first, middle)}, computed(scalarOf(op.getResult())),
      [&] {
        if (middle - first > 1) return concat(op, at, first, middle, start);
        Indices from(at);
        from[dim] = at[dim] - Index(start);
        return build(op.getInputs()[first], from);
      },
      [&] { return concat(op, at, middle, end, start + sizeOf(first, middle)); }, rest);
}

std::optional<Index> ProgramBuilder::indexFrom(Value v, const Indices &at, int64_t size) {
  int node = build(v, at);
  if (node < 0) return std::nullopt;
  if (p.nodes[node].kind == Node::Constant) return Index(p.nodes[node].whole);
  if (p.nodes[node].kind == Node::Position) return p.nodes[node].index;
  return Index::atom(p.space.value(node, size));
}

} // namespace zero::codegen

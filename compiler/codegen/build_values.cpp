//===- build_values.cpp - values of a kernel to nodes ---------------------------------------------------===//
#include "compiler/codegen/builder.h"
#include "compiler/codegen/primitives.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::codegen {
namespace {

void append(std::vector<int64_t> &key, const Index &index) {
  key.push_back(index.terms.size());
  key.push_back(index.constant);
  for (const Term &t : index.terms) key.insert(key.end(), {int64_t(t.atom), t.scale});
}
void append(std::vector<int64_t> &key, ArrayRef<Guard> guards) {
  key.push_back(guards.size());
  for (const Guard &g : guards) {
    append(key, g.index);
    key.insert(key.end(), {g.low, g.high, g.step});
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

int ProgramBuilder::intern(Node n) {
  std::vector<int64_t> key{n.kind, int64_t(n.fn), int64_t(n.type), n.arg, n.whole, int64_t(n.operands.size())};
  int64_t bits;
  static_assert(sizeof bits == sizeof n.real);
  std::memcpy(&bits, &n.real, sizeof bits);
  key.push_back(bits);
  key.insert(key.end(), n.operands.begin(), n.operands.end());
  append(key, n.index);
  append(key, n.guards);
  key.insert(key.end(), n.dims.begin(), n.dims.end());
  auto [it, fresh] = interned.try_emplace(std::move(key), int(p.nodes.size()));
  if (fresh) p.nodes.push_back(std::move(n));
  return it->second;
}

int ProgramBuilder::constant(Scalar type, double value) {
  Node n(Node::Constant);
  n.type = type;
  n.real = value;
  return intern(n);
}

int ProgramBuilder::whole(Scalar type, int64_t value) {
  Node n(Node::Constant);
  n.type = type;
  n.whole = value;
  return intern(n);
}

int ProgramBuilder::apply(Fn fn, Scalar type, ArrayRef<int> operands, int64_t whole) {
  Node n(Node::Apply);
  n.fn = fn, n.type = type, n.whole = whole;
  n.operands.assign(operands.begin(), operands.end());
  return intern(n);
}

int ProgramBuilder::build(Value v, const Indices &at) {
  std::vector<int64_t> key{int64_t(reinterpret_cast<intptr_t>(v.getAsOpaquePointer()))};
  for (const Index &i : at) append(key, i);
  append(key, guards);
  auto it = memo.find(key);
  if (it != memo.end()) return it->second;
  if (p.nodes.size() > kMostNodes) {
    kernel.emitOpError("is no kernel: it would have more than ") << kMostNodes << " values for each element, counting each index by itself";
    return -1;
  }
  int node = isa<BlockArgument>(v) ? load(cast<BlockArgument>(v), at) : compute(v, at);
  memo[key] = node;
  return node;
}

int ProgramBuilder::load(BlockArgument v, const Indices &at) {
  Node n(Node::Load);
  n.type = computed(scalarOf(v));
  n.arg = v.getArgNumber();
  n.index = p.space.linearize(at, shapeOf(v));
  // An element that exists whatever the guards say is simply read.
  auto [low, high] = p.space.range(n.index);
  bool plain = llvm::all_of(n.index.terms, [&](const Term &t) { return p.space.atoms[t.atom].kind == Atom::Dim; });
  if (!plain || low < 0 || high >= elementsOf(v)) n.guards.assign(guards.begin(), guards.end());
  return intern(n);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

int ProgramBuilder::compute(Value v, const Indices &at) {
  Operation *op = v.getDefiningOp();
  if (auto formula = dyn_cast<PointwiseOpInterface>(op)) return pointwise(formula, at);
  if (auto indexed = dyn_cast<IndexedOpInterface>(op)) return read(indexed, at);
  if (auto sum = dyn_cast<ReduceOp>(op)) return reduce(sum, at);
  op->emitOpError("cannot stand at this place of a kernel");
  return -1;
}

/// Numbers are nodes.
class ProgramBuilder::FormulaBuilder : public ScalarBuilder {
public:
  explicit FormulaBuilder(ProgramBuilder &program) : program(program) {}
  bool inF64 = false; // a long function of f64 was asked for

  Number apply(Fn fn, ArrayRef<Number> numbers) override {
    SmallVector<int> operands;
    for (Number n : numbers) operands.push_back(n.id);
    Scalar type = isPredicate(fn) ? Scalar::Bool : typeOf(numbers[fn == Fn::Select ? 1 : 0]);
    inF64 |= type == Scalar::F64 && isTranscendental(fn);
    if (fn == Fn::Exp)
      if (int node = program.normalized(operands[0]); node >= 0) return {node};
    return {program.apply(fn, type, operands)};
  }
  Number constant(Number like, double value) override {
    Scalar type = typeOf(like);
    return {isFloat(type) ? program.constant(type, value) : program.whole(type, int64_t(value))};
  }
  Number convert(Number x, Type element) override {
    Scalar from = typeOf(x), to = scalarOf(element);
    if (from == to) return x;
    return {program.apply(Fn::Cast, computed(to), {x.id}, int64_t(to))}; // `whole` is the precision to round to
  }

private:
  ProgramBuilder &program;
  Scalar typeOf(Number n) const { return program.p.nodes[n.id].type; }
};

int ProgramBuilder::pointwise(PointwiseOpInterface op, const Indices &at) {
  SmallVector<Number, 3> operands;
  for (Value o : op->getOperands()) {
    operands.push_back({build(o, at)});
    if (operands.back().id < 0) return -1;
  }
  FormulaBuilder formula(*this);
  Number result = op.compute(formula, operands);
  if (!formula.inF64) return result.id;
  op->emitOpError("has no generated form for f64; it is computed in f32, f16 or bf16");
  return -1;
}

/// Shorter rows are not rewritten. The rewriting rounds otherwise and applies only where one kernel has both the sum and the exponential;
/// those of a row over the tiles of a vocabulary are fused differently where a budget keeps logits, and must give the same bits.
static constexpr int64_t kManyColumns = 32;

int ProgramBuilder::normalized(int exponent) {
  auto is = [&](int node, Fn fn) { return p.nodes[node].kind == Node::Apply && p.nodes[node].fn == fn; };
  if (!is(exponent, Fn::Sub)) return -1;
  int x = p.nodes[exponent].operands[0], sum = p.nodes[exponent].operands[1];
  if (!is(sum, Fn::Add)) return -1;
  for (int side : {0, 1}) {
    int log = p.nodes[sum].operands[side], shift = p.nodes[sum].operands[1 - side];
    if (!is(log, Fn::Log)) continue;
    int total = p.nodes[log].operands[0];
    if (p.nodes[total].kind != Node::Reduce || p.nodes[total].fn != Fn::Add || !llvm::is_contained(p.reductions, total)) continue;
    int each = p.nodes[total].operands[0];
    if (!is(each, Fn::Exp) || !is(p.nodes[each].operands[0], Fn::Sub)) continue;
    if (ArrayRef<int>(p.nodes[p.nodes[each].operands[0]].operands) != ArrayRef<int>{x, shift}) continue;
    int64_t columns = 1;
    for (unsigned d : p.nodes[total].dims) columns *= p.size(d);
    if (columns < kManyColumns) continue;
    Scalar type = p.nodes[each].type;
    return apply(Fn::Mul, type, {each, apply(Fn::Div, type, {constant(type, 1), total})});
  }
  return -1;
}

int ProgramBuilder::reduce(ReduceOp op, const Indices &at) {
  auto shape = shapeOf(op.getInput());
  Indices from(shape.size());
  SmallVector<int64_t> reducedShape;
  size_t kept = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    if (llvm::is_contained(op.getDims(), int64_t(i)))
      reducedShape.push_back(shape[i]);
    else
      from[i] = at[kept++];
  Node n(Node::Reduce);
  n.fn = op.getKind() == ReductionKind::sum ? Fn::Add : op.getKind() == ReductionKind::max ? Fn::Max : Fn::Min;
  n.type = computed(scalarOf(op.getResult()));
  if (reachOf(op) == Reach::Nothing) {
    for (int64_t d : op.getDims()) from[d] = Index(0);
    return build(op.getInput(), from);
  }
  Index linear = p.space.linearize(at, shapeOf(op.getResult()));
  bool rows = form.kind == Program::Rows;
  bool isWide = form.wide.contains(op) && linear == (rows ? outerLinear : innerLinear);
  std::vector<unsigned> dims;
  Indices over;
  SmallVector<Guard> outside;
  if (isWide) {
    // The whole kernel runs over these dimensions, whatever asked for the result.
    Index position = rows ? innerLinear : outerLinear;
    over = p.space.reshape(ArrayRef<Index>(position), {elementsIn(rows ? form.innerShape : form.outerShape)}, reducedShape);
    dims = rows ? p.inner : p.reduced;
    outside.swap(guards);
  } else {
    for (auto [i, size] : llvm::enumerate(reducedShape)) over.push_back(loop(op, i, size, dims));
  }
  for (auto [d, i] : llvm::zip(op.getDims(), over)) from[d] = i;
  n.dims.assign(dims.begin(), dims.end());
  int operand = build(op.getInput(), from);
  if (isWide) outside.swap(guards);
  if (operand < 0) return -1;
  n.operands = {operand};
  int node = intern(n);
  if (isWide && !llvm::is_contained(p.reductions, node)) p.reductions.push_back(node);
  return node;
}

} // namespace zero::codegen

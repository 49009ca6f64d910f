//===- build_values.cpp - values of a kernel to nodes ---------------------------------------------------===//
#include "compiler/codegen/builder.h"
#include "compiler/codegen/primitives.h"
#include "llvm/ADT/TypeSwitch.h"

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
  if (auto fn = functionOf(op)) return function(op, *fn, at);
  return llvm::TypeSwitch<Operation *, int>(op)
      .Case([&](ConstantOp c) { return splat(c); })
      .Case([&](IotaOp c) {
        Node n(Node::Position);
        n.type = computed(scalarOf(v));
        n.index = at[c.getDim()];
        return intern(n);
      })
      .Case([&](RandomOp c) { return random(c, at); })
      .Case([&](BroadcastOp c) {
        Indices from;
        for (auto [n, d] : llvm::zip(shapeOf(c.getInput()), c.getDims())) from.push_back(n == 1 ? Index(0) : at[d]);
        return build(c.getInput(), from);
      })
      .Case([&](ReshapeOp c) { return build(c.getInput(), p.space.reshape(at, shapeOf(v), shapeOf(c.getInput()))); })
      .Case([&](TransposeOp c) {
        Indices from(at.size());
        for (auto [i, d] : llvm::enumerate(c.getPerm())) from[d] = at[i];
        return build(c.getInput(), from);
      })
      .Case([&](SliceOp c) {
        Indices from;
        for (auto [i, start, step] : llvm::zip(at, c.getStarts(), c.getSteps())) from.push_back(Index(start) + i * step);
        return build(c.getInput(), from);
      })
      .Case([&](PadOp c) { return pad(c, at); })
      .Case([&](ConcatOp c) { return concat(c, at, 0, c.getInputs().size(), 0); })
      .Case([&](GatherOp c) {
        size_t lead = shapeOf(c.getIndices()).size();
        auto row = indexFrom(c.getIndices(), Indices(at.begin(), at.begin() + lead), shapeOf(c.getInput())[0]);
        if (!row) return -1;
        Indices from{*row};
        from.append(at.begin() + lead, at.end());
        return build(c.getInput(), from);
      })
      .Case([&](TakeAlongOp c) {
        auto column = indexFrom(c.getIndices(), at, shapeOf(c.getInput()).back());
        if (!column) return -1;
        Indices from(at);
        from.push_back(*column);
        return build(c.getInput(), from);
      })
      .Case([&](ReduceOp c) { return reduce(c, at); })
      .Default([&](Operation *unknown) {
        unknown->emitOpError("cannot stand at this place of a kernel");
        return -1;
      });
}

int ProgramBuilder::function(Operation *op, Fn fn, const Indices &at) {
  Scalar stored = scalarOf(op->getResult(0)), type = computed(stored);
  if (type == Scalar::F64 && isLong(fn)) {
    op->emitOpError("has no generated form for f64; it is computed in f32, f16 or bf16");
    return -1;
  }
  SmallVector<int> operands;
  for (Value o : op->getOperands()) {
    operands.push_back(build(o, at));
    if (operands.back() < 0) return -1;
  }
  if (fn == Fn::Cast) {
    Scalar from = scalarOf(op->getOperand(0));
    if (from == stored || (stored == Scalar::F32 && computed(from) == Scalar::F32)) return operands[0];
    return apply(Fn::Cast, type, operands, int64_t(stored)); // `whole` is the precision to round to
  }
  if (fn == Fn::Exp)
    if (int node = normalized(operands[0]); node >= 0) return node;
  return apply(fn, type, operands);
}

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
    Scalar type = p.nodes[each].type;
    return apply(Fn::Mul, type, {each, apply(Fn::Div, type, {constant(type, 1), total})});
  }
  return -1;
}

int ProgramBuilder::splat(ConstantOp op) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || !dense.isSplat()) {
    op.emitOpError("has several values and cannot stand in a kernel; it must be an operand of the launch");
    return -1;
  }
  Scalar type = computed(scalarOf(op.getResult()));
  if (isa<FloatType>(dense.getElementType())) return constant(type, toDouble(dense.getSplatValue<APFloat>()));
  auto bits = dense.getSplatValue<APInt>();
  return whole(type, type == Scalar::Bool ? int64_t(bits.getZExtValue()) : bits.getSExtValue());
}

/// Element i of sample s is number s * (elements of a sample) + i of the generator, so that ranks and micro-steps draw apart.
int ProgramBuilder::random(RandomOp op, const Indices &at) {
  Value result = op.getResult();
  int seed = build(op.getSeed(), {Index(0)}), sample = build(op.getSeed(), {Index(1)});
  if (seed < 0 || sample < 0) return -1;
  Node position(Node::Position);
  position.type = Scalar::I64;
  position.index = p.space.linearize(at, shapeOf(result));
  int64_t samples = int64_t(op.getSamples());
  int perSample = whole(Scalar::I64, samples ? elementsOf(result) / samples : 0);
  int counter = apply(Fn::Add, Scalar::I64, {apply(Fn::Mul, Scalar::I64, {sample, perSample}), intern(position)});
  return apply(Fn::Random, Scalar::F32, {seed, counter}, op.getId());
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

//===- build_reads.cpp - which elements operations read, as nodes of a kernel -------------------------===//
#include "compiler/codegen/builder.h"
#include "compiler/codegen/primitives.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::codegen {

/// Numbers are nodes; of one operation.
class ProgramBuilder::Reader : public ElementReader {
public:
  Reader(ProgramBuilder &program, Operation *op)
      : program(program), guards(program.guards), op(op), type(computed(scalarOf(op->getResult(0)))) {}

  Space &space() override { return program.p.space; }

  Number operand(unsigned number, ArrayRef<Index> at) override { return {program.build(op->getOperand(number), Indices(at))}; }

  std::optional<Index> indexFrom(unsigned number, ArrayRef<Index> at, int64_t size) override {
    int node = operand(number, at).id;
    if (node < 0) return std::nullopt;
    const Node &n = program.p.nodes[node];
    if (n.kind == Node::Constant) return Index(n.whole);
    if (n.kind == Node::Position) return n.index;
    return Index::atom(space().value(node, size));
  }

  Number choose(ArrayRef<Guard> all, function_ref<Number()> inside, function_ref<Number()> outside,
                std::optional<Guard> otherwise) override {
    SmallVector<Guard> needed;
    for (const Guard &g : all)
      if (auto simple = space().simplify(g)) needed.push_back(*simple);
    if (needed.empty()) return inside();
    size_t before = guards.size();
    for (const Guard &g : needed)
      if (!llvm::is_contained(guards, g)) guards.push_back(g);
    int a = inside().id;
    guards.truncate(before);
    int b = outside().id;
    if (a < 0 || b < 0) return {-1};
    Node n(Node::Choose);
    n.type = type;
    n.operands = {a, b};
    n.guards.assign(needed.begin(), needed.end());
    if (otherwise)
      if (auto simple = space().simplify(*otherwise)) n.otherwise.push_back(*simple);
    return {program.intern(n)};
  }

  Number under(const Guard &guard, function_ref<Number()> body) override {
    auto simple = space().simplify(guard);
    size_t before = guards.size();
    if (simple && !llvm::is_contained(guards, *simple)) guards.push_back(*simple);
    Number number = body();
    guards.truncate(before);
    return number;
  }

  Number constant(Attribute value) override {
    if (auto real = dyn_cast<FloatAttr>(value)) return {program.constant(type, toDouble(real.getValue()))};
    APInt bits = cast<IntegerAttr>(value).getValue();
    return {program.whole(type, type == Scalar::Bool ? int64_t(bits.getZExtValue()) : bits.getSExtValue())};
  }

  Number position(const Index &index) override { return {position(type, index)}; }

  Number random(uint64_t id, int64_t perSample, const Index &index) override {
    int seed = operand(0, {Index(0)}).id, sample = operand(0, {Index(1)}).id;
    if (seed < 0 || sample < 0) return {-1};
    int first = program.apply(Fn::Mul, Scalar::I64, {sample, program.whole(Scalar::I64, perSample)});
    int counter = program.apply(Fn::Add, Scalar::I64, {first, position(Scalar::I64, index)});
    return {program.apply(Fn::Random, Scalar::F32, {seed, counter}, int64_t(id))};
  }

private:
  ProgramBuilder &program;
  SmallVector<Guard> &guards;
  Operation *op;
  Scalar type;

  int position(Scalar as, const Index &index) {
    Node n(Node::Position);
    n.type = as;
    n.index = index;
    return program.intern(n);
  }
};

int ProgramBuilder::read(IndexedOpInterface op, const Indices &at) {
  Reader reader(*this, op);
  return op.read(reader, at).id;
}

} // namespace zero::codegen

//===- emit_index.cpp - index arithmetic of a kernel to vector code --------------------------------===//
#include "compiler/codegen/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {

std::vector<bool> Emitter::dependsOf(const Index &index) const {
  std::vector<bool> depends(p.space.atoms.size(), false);
  for (const Term &t : index.terms) {
    const Atom &a = p.space.atoms[t.atom];
    std::vector<bool> more;
    if (a.kind == Atom::Dim)
      depends[t.atom] = true;
    else
      more = a.kind == Atom::Value ? p.nodes[a.node].depends : dependsOf(a.of);
    for (size_t i = 0; i < more.size(); ++i)
      if (more[i]) depends[i] = true;
  }
  return depends;
}

bool Emitter::variesByLane(const Index &index) const { return lane && dependsOf(index)[*lane]; }

Value Emitter::divided(Value v, int64_t divisor, bool remainder, bool maybeNegative) {
  auto constant = [&](int64_t n) { return isa<IndexType>(v.getType()) ? number(n) : math.whole(v.getType(), n); };
  Value d = constant(divisor);
  if (!maybeNegative) return remainder ? b.create<arith::RemUIOp>(loc, v, d).getResult() : b.create<arith::DivUIOp>(loc, v, d).getResult();
  Value zero = constant(0), one = constant(1);
  Value rest = b.create<arith::RemSIOp>(loc, v, d);
  Value below = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, rest, zero);
  if (remainder) return b.create<arith::SelectOp>(loc, below, b.create<arith::AddIOp>(loc, rest, d), rest);
  Value q = b.create<arith::DivSIOp>(loc, v, d);
  return b.create<arith::SelectOp>(loc, below, b.create<arith::SubIOp>(loc, q, one), q);
}

Value Emitter::atomValue(unsigned atom) {
  const Atom &a = p.space.atoms[atom];
  if (a.kind == Atom::Dim) {
    for (size_t i = scopes.size(); i-- > 0;)
      for (auto &[bound, v] : scopes[i].bound)
        if (bound == atom) return v;
    llvm_unreachable("a dimension outside its loop");
  }
  if (a.kind == Atom::Value) { // data: whatever it holds, the element exists
    Value v = b.create<arith::IndexCastOp>(loc, b.getIndexType(), value(a.node));
    return b.create<arith::MinUIOp>(loc, v, number(a.size - 1));
  }
  return divided(scalarIndex(a.of), a.divisor, a.kind == Atom::Remainder, p.space.range(a.of).first < 0);
}

Value Emitter::scalarIndex(const Index &index) {
  OpBuilder::InsertionGuard guard(b);
  goTo(std::max(depthOf(dependsOf(index)), p.guarded(index) ? branch : 0));
  Value sum;
  for (const Term &t : index.terms) {
    Value v = atomValue(t.atom);
    if (t.scale != 1) v = b.create<arith::MulIOp>(loc, v, number(t.scale));
    sum = sum ? b.create<arith::AddIOp>(loc, sum, v).getResult() : v;
  }
  if (!sum) return number(index.constant);
  return index.constant ? b.create<arith::AddIOp>(loc, sum, number(index.constant)).getResult() : sum;
}

Value Emitter::laneAtom(unsigned atom) {
  const Atom &a = p.space.atoms[atom];
  auto i64s = vectorOf(b.getI64Type());
  if (a.kind == Atom::Value) {
    Value v = value(a.node);
    if (v.getType() != i64s) v = b.create<arith::ExtSIOp>(loc, i64s, v);
    return b.create<arith::MinUIOp>(loc, v, math.whole(i64s, a.size - 1));
  }
  return divided(laneIndex(a.of), a.divisor, a.kind == Atom::Remainder, p.space.range(a.of).first < 0);
}

Value Emitter::laneIndex(const Index &index) {
  auto i64s = vectorOf(b.getI64Type());
  Index uniform(index.constant);
  SmallVector<Value> varying;
  for (const Term &t : index.terms) {
    Index one = Index::atom(t.atom, t.scale);
    if (!variesByLane(one)) {
      uniform = uniform + one;
      continue;
    }
    if (t.atom == *lane) {
      uniform = uniform + one; // the first lane's, plus the steps between lanes
      SmallVector<int64_t> steps;
      for (unsigned l = 0; l < lanes; ++l) steps.push_back(l * t.scale);
      varying.push_back(math.constants(b.getI64VectorAttr(steps)));
      continue;
    }
    Value v = laneAtom(t.atom);
    if (t.scale != 1) v = b.create<arith::MulIOp>(loc, v, math.whole(i64s, t.scale));
    varying.push_back(v);
  }
  Value start = b.create<arith::IndexCastOp>(loc, b.getI64Type(), scalarIndex(uniform));
  Value sum = b.create<vector::BroadcastOp>(loc, i64s, start);
  for (Value v : varying) sum = b.create<arith::AddIOp>(loc, sum, v);
  return sum;
}

Value Emitter::maskOf(int64_t count) {
  SmallVector<bool> bits;
  for (unsigned l = 0; l < lanes; ++l) bits.push_back(l < count);
  return math.constants(DenseElementsAttr::get(vectorOf(b.getI1Type()), ArrayRef<bool>(bits)));
}

/// Null when all of them are known to hold.
Value Emitter::holds(ArrayRef<Guard> guards, bool asVector) {
  Value all;
  auto both = [&](Value x) { all = all ? b.create<arith::AndIOp>(loc, all, x).getResult() : x; };
  for (const Guard &g : guards) {
    if (llvm::is_contained(holding, g)) continue;
    Value low, high, steps, zero, i;
    bool varies = asVector && variesByLane(g.index);
    if (varies) {
      auto i64s = vectorOf(b.getI64Type());
      i = laneIndex(g.index);
      low = math.whole(i64s, g.low), high = math.whole(i64s, g.high), steps = math.whole(i64s, g.step), zero = math.whole(i64s, 0);
    } else {
      i = scalarIndex(g.index);
      low = number(g.low), high = number(g.high), steps = number(g.step), zero = number(0);
    }
    Value inside;
    auto narrow = [&](Value x) { inside = inside ? b.create<arith::AndIOp>(loc, inside, x).getResult() : x; };
    auto [least, most] = p.space.range(g.index);
    if (least < g.low) narrow(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, i, low));
    if (most >= g.high) narrow(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, i, high));
    if (g.step > 1) narrow(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, b.create<arith::RemSIOp>(loc, i, steps), zero));
    if (!inside) inside = math.constants(b.getIntegerAttr(b.getI1Type(), 1));
    if (asVector && !isa<VectorType>(inside.getType())) inside = b.create<vector::BroadcastOp>(loc, vectorOf(b.getI1Type()), inside);
    both(inside);
  }
  return all;
}

} // namespace zero::codegen

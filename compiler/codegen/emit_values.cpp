//===- emit_values.cpp - expressions of a kernel to vector code ----------------------------------===//
#include "compiler/codegen/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace zero::codegen {

Type Emitter::typeOf(Scalar type) const {
  switch (type) {
  case Scalar::F64:
    return b.getF64Type();
  case Scalar::I64:
    return b.getI64Type();
  case Scalar::I32:
    return b.getI32Type();
  case Scalar::Bool:
    return b.getI1Type();
  default:
    return b.getF32Type();
  }
}

Type Emitter::storedAs(Scalar type) const {
  switch (type) {
  case Scalar::F16:
    return b.getF16Type();
  case Scalar::BF16: // as bits: a processor without the type would call a library for it
    return b.getIntegerType(16);
  case Scalar::Bool:
    return b.getI8Type();
  default:
    return typeOf(type);
  }
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

size_t Emitter::depthOf(const std::vector<bool> &depends) const {
  size_t depth = 0;
  for (size_t i = 0; i < scopes.size(); ++i)
    for (auto &[atom, value] : scopes[i].bound)
      if (atom < depends.size() && depends[atom]) depth = i;
  return depth;
}

void Emitter::goTo(size_t depth) {
  Scope &s = scopes[depth];
  if (s.before)
    b.setInsertionPoint(s.before);
  else
    b.setInsertionPointToEnd(s.block);
}

Value Emitter::number(int64_t value) { return math.constants(b.getIndexAttr(value)); }

/// Where it is emitted: where everything it depends on is known, and not before what guards it.
size_t Emitter::depthOf(const Node &n) const { return std::max(depthOf(n.depends), n.guarded ? branch : 0); }

Value Emitter::value(int node) {
  const Node &n = p.nodes[node];
  size_t depth = depthOf(n);
  for (size_t i = scopes.size(); i-- > depth;)
    if (auto it = scopes[i].values.find(node); it != scopes[i].values.end()) return it->second;
  assert(!llvm::is_contained(p.reductions, node) && "a reduction is asked for before it is computed");
  OpBuilder::InsertionGuard guard(b);
  goTo(depth);
  auto kept = inRow.find(node);
  Value v = kept == inRow.end() ? compute(n) : reload(kept->second);
  scopes[depth].values[node] = v;
  return v;
}

Value Emitter::vector(int node) {
  Value v = value(node);
  if (isa<VectorType>(v.getType())) return v;
  size_t depth = depthOf(p.nodes[node]);
  for (size_t i = scopes.size(); i-- > depth;)
    if (scopes[i].values.contains(node)) depth = i;
  auto &cache = scopes[depth].splat;
  if (auto it = cache.find(node); it != cache.end()) return it->second;
  OpBuilder::InsertionGuard guard(b);
  goTo(depth);
  return cache[node] = b.create<vector::BroadcastOp>(loc, vectorOf(v.getType()), v);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Value Emitter::compute(const Node &n) {
  switch (n.kind) {
  case Node::Constant: {
    Type t = typeOf(n.type);
    if (isFloat(n.type)) return math.constants(b.getFloatAttr(t, n.real));
    return math.whole(t, n.type == Scalar::Bool ? n.whole != 0 : n.whole);
  }
  case Node::Load:
    return loadNode(n);
  case Node::Position:
    return position(n);
  case Node::Choose: {
    bool wide = isVector(n);
    if (wide && llvm::none_of(n.guards, [&](const Guard &g) { return variesByLane(g.index); })) return chooseByBranch(n);
    Value condition = holds(n.guards, wide);
    if (!condition) return wide ? vector(n.operands[0]) : value(n.operands[0]);
    Value x = wide ? vector(n.operands[0]) : value(n.operands[0]), y = wide ? vector(n.operands[1]) : value(n.operands[1]);
    return b.create<arith::SelectOp>(loc, condition, x, y);
  }
  case Node::Reduce:
    return reduceInline(n);
  case Node::Apply:
    return apply(n);
  }
  llvm_unreachable("kind of node");
}

/// All lanes choose alike: a branch, on each side of which the guards need not be looked at again.
Value Emitter::chooseByBranch(const Node &n) {
  Value condition = holds(n.guards, false);
  if (!condition) return vector(n.operands[0]); // inside a branch that these guards decided
  Type type = vectorOf(typeOf(n.type));
  size_t depth = depthOf(n), outerBranch = branch;
  goTo(depth);
  auto op = b.create<scf::IfOp>(loc, TypeRange{type}, condition, true);
  CodeBefore outside(scopes, op);
  auto side = [&](Block *block, int node, ArrayRef<Guard> known) {
    scopes.push_back(Scope(block));
    branch = scopes.size() - 1;
    size_t assumed = holding.size();
    holding.append(known.begin(), known.end());
    b.setInsertionPointToEnd(block);
    Value v = vector(node);
    b.setInsertionPointToEnd(block);
    b.create<scf::YieldOp>(loc, v);
    holding.truncate(assumed);
    scopes.pop_back();
    branch = outerBranch;
  };
  side(op.thenBlock(), n.operands[0], n.guards);
  side(op.elseBlock(), n.operands[1], n.otherwise);
  return op.getResult(0);
}

Value Emitter::position(const Node &n) {
  Value i;
  Type element = typeOf(n.type);
  // As 32-bit numbers where they suffice: half the registers, and no narrowing.
  auto [least, most] = p.space.range(n.index);
  bool small = n.type != Scalar::I64 && n.type != Scalar::F64 && least >= INT32_MIN && most <= INT32_MAX;
  Index first = n.index;
  bool steps = isVector(n) && small && !variesByLane(first.without(*lane));
  if (steps) {
    SmallVector<int32_t> offsets;
    for (unsigned l = 0; l < lanes; ++l) offsets.push_back(int32_t(l * n.index.scaleOf(*lane)));
    Value base = b.create<arith::IndexCastOp>(loc, b.getI32Type(), scalarIndex(first));
    i = b.create<arith::AddIOp>(loc, b.create<vector::BroadcastOp>(loc, vectorOf(b.getI32Type()), base),
                                math.constants(b.getI32VectorAttr(offsets)));
    if (n.type == Scalar::I32) return i;
  } else if (isVector(n))
    i = laneIndex(n.index);
  else
    i = b.create<arith::IndexCastOp>(loc, b.getI64Type(), scalarIndex(n.index));
  Type to = math.shaped(i, element);
  if (isFloat(n.type)) return b.create<arith::SIToFPOp>(loc, to, i);
  if (n.type == Scalar::Bool) return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, i, math.whole(i.getType(), 0));
  return n.type == Scalar::I64 ? i : b.create<arith::TruncIOp>(loc, to, i).getResult();
}

Value Emitter::reduceInline(const Node &n) {
  // Where the vector loop around it runs over a dimension of its own, its terms are numbers, one for each point, and no lanes.
  llvm::SaveAndRestore keepLane(lane);
  llvm::SaveAndRestore keepMask(mask);
  if (lane && llvm::is_contained(n.dims, *lane)) {
    lane.reset();
    mask = {};
  }
  Value start = identity(n.fn, n.type, isVector(n));
  auto join = [&](Values x, Values y) -> Values { return {combine(n.fn, n.type, x[0], y[0])}; };
  return reduceOver(depthOf(n), n.dims, {start}, join, [&](Values carried) -> Values {
    return join(carried, {isa<VectorType>(start.getType()) ? vector(n.operands[0]) : value(n.operands[0])});
  })[0];
}

Value Emitter::identity(Fn fn, Scalar type, bool asVector) {
  Type t = asVector ? Type(vectorOf(typeOf(type))) : typeOf(type);
  if (!isFloat(type)) {
    unsigned bits = typeOf(type).getIntOrFloatBitWidth();
    APInt value = fn == Fn::Max ? APInt::getSignedMinValue(bits) : fn == Fn::Min ? APInt::getSignedMaxValue(bits) : APInt::getZero(bits);
    if (type == Scalar::Bool) return math.whole(t, fn == Fn::Min);
    return math.whole(t, value.getSExtValue());
  }
  double value = fn == Fn::Max ? -INFINITY : fn == Fn::Min ? INFINITY : 0.0;
  TypedAttr one = b.getFloatAttr(typeOf(type), value);
  if (asVector) one = DenseElementsAttr::get(cast<VectorType>(t), Attribute(one));
  return math.constants(one);
}

/// Max and Min are NaN if either operand is; the sign of zero does not count.
Value Emitter::combine(Fn fn, Scalar type, Value x, Value y) {
  auto noSignedZeros = arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::nsz);
  if (isFloat(type))
    return fn == Fn::Add   ? b.create<arith::AddFOp>(loc, x, y).getResult()
           : fn == Fn::Max ? b.create<arith::MaximumFOp>(loc, x, y, noSignedZeros).getResult()
                           : b.create<arith::MinimumFOp>(loc, x, y, noSignedZeros).getResult();
  if (type == Scalar::Bool)
    return fn == Fn::Min ? b.create<arith::AndIOp>(loc, x, y).getResult() : b.create<arith::OrIOp>(loc, x, y).getResult();
  return fn == Fn::Add   ? b.create<arith::AddIOp>(loc, x, y).getResult()
         : fn == Fn::Max ? b.create<arith::MaxSIOp>(loc, x, y).getResult()
                         : b.create<arith::MinSIOp>(loc, x, y).getResult();
}

Value Emitter::horizontal(Fn fn, Scalar type, Value v) {
  for (int64_t n = cast<VectorType>(v.getType()).getNumElements(); n > 1; n /= 2) {
    Value low = b.create<vector::ExtractStridedSliceOp>(loc, v, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{n / 2}, ArrayRef<int64_t>{1});
    Value high = b.create<vector::ExtractStridedSliceOp>(loc, v, ArrayRef<int64_t>{n / 2}, ArrayRef<int64_t>{n / 2}, ArrayRef<int64_t>{1});
    v = combine(fn, type, low, high);
  }
  return b.create<vector::ExtractOp>(loc, v, 0);
}

} // namespace zero::codegen

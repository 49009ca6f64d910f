//===- emit_scatter.cpp - sums of updates that fall into rows --------------------------------------===//
#include "compiler/codegen/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {

/// `initialise`, unless the result is an operand in place: it is there already.
void Emitter::unlessInPlace(const std::function<void()> &initialise) {
  const Store &out = p.stores[0];
  const Node &start = p.nodes[out.node];
  bool isThere =
      start.kind == Node::Load && start.index == out.index && start.guards.empty() && p.inputs[start.arg].type == p.outputs[0].type;
  if (!isThere) return initialise();
  Value there = b.create<memref::ExtractAlignedPointerAsIndexOp>(loc, inputs[start.arg]);
  Value here = b.create<memref::ExtractAlignedPointerAsIndexOp>(loc, outputs[0]);
  when(b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, there, here), initialise);
}

Value Emitter::scatterRow() { return b.create<arith::IndexCastOp>(loc, b.getIndexType(), value(p.scatterRow)); }

Value Emitter::liesIn(Value row, Value from, Value to) {
  return b.create<arith::AndIOp>(loc, b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::uge, row, from),
                                 b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, row, to));
}

Value Emitter::updatedColumn() {
  Index column = p.stores[0].index;
  for (unsigned d : p.reduced) column = column.without(d);
  column.constant = 0;
  return scalarIndex(column);
}

Value Emitter::loadUpdated(Value at) {
  VectorType wide = vectorOf(storedAs(p.outputs[0].type));
  if (!mask) return b.create<vector::LoadOp>(loc, wide, outputs[0], ValueRange{at});
  return b.create<vector::MaskedLoadOp>(loc, wide, outputs[0], ValueRange{at}, mask, math.constants(b.getZeroAttr(wide)));
}

Value Emitter::plusUpdate(Value stored, Value update) {
  Scalar type = p.outputs[0].type;
  return toMemory(combine(Fn::Add, p.nodes[p.scatterValue].type, fromMemory(stored, type), update), type);
}

void Emitter::storeUpdated(Value stored, Value at) {
  if (mask)
    b.create<vector::MaskedStoreOp>(loc, outputs[0], ValueRange{at}, mask, stored);
  else
    b.create<vector::StoreOp>(loc, stored, outputs[0], ValueRange{at});
}

/// To the vector in work of the row that begins at element `start`.
void Emitter::addUpdate(Value start) {
  Value update = vector(p.scatterValue), at = b.create<arith::AddIOp>(loc, start, updatedColumn());
  storeUpdated(plusUpdate(loadUpdated(at), update), at);
}

void Emitter::emitScatter(Value begin, Value end) {
  goTo(0);
  int64_t rows = p.points(p.reduced), width = p.outputs[0].elements / rows;
  Value block = number(kBlock);
  Value from = b.create<arith::MulIOp>(loc, begin, block);
  Value to = b.create<arith::MinUIOp>(loc, b.create<arith::MulIOp>(loc, end, block), number(rows));
  unlessInPlace([&] {
    loop(scopes.size() - 1, from, to, 1, std::nullopt, {}, [&](Value row, Values) -> Values {
      bindOuter(row, p.reduced);
      return sweep(p.inner, {}, 1, [&](Values) -> Values {
        storeAll(p.stores);
        return {};
      });
    });
  });
  nest(0, p.outer, {}, [&](Values) -> Values {
    Value row = scatterRow();
    when(liesIn(row, from, to), [&] {
      Value start = b.create<arith::MulIOp>(loc, row, number(width));
      sweep(p.inner, {}, 1, [&](Values) -> Values {
        addUpdate(start);
        return {};
      });
    });
    return {};
  });
}

} // namespace zero::codegen

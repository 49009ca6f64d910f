//===- emit_memory.cpp - loads and stores of a kernel ---------------------------------------------===//
#include "compiler/codegen/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {

namespace {
constexpr int64_t kBytesAhead = 2048, kRowsAhead = 16;
} // namespace

Value Emitter::fromMemory(Value v, Scalar type) {
  if (type == Scalar::Bool) return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, v, math.whole(v.getType(), 0));
  return type == Scalar::F16 || type == Scalar::BF16 ? math.widen(v) : v;
}

Value Emitter::toMemory(Value v, Scalar type) {
  if (type == Scalar::Bool) return b.create<arith::ExtUIOp>(loc, math.shaped(v, b.getI8Type()), v);
  return type == Scalar::F16 || type == Scalar::BF16 ? math.narrow(v, storedAs(type)) : v;
}

/// How far ahead of a load its memory is asked for, in elements, where the loops will come by there: 0 if not. The processor's own
/// prefetchers end at each page, and long functions fill its window before it has seen the next row.
int64_t Emitter::aheadOf(const Node &n) const {
  if (!prefetches) return 0;
  if (p.kind == Program::Columns) return kRowsAhead * n.index.scaleOf(p.reduced.back());
  if (p.kind != Program::Rows) return 0;
  SmallVector<unsigned> dims(p.outer.begin(), p.outer.end());
  dims.append(p.inner.begin(), p.inner.end());
  // A row that goes on where the one before ended, or a long one.
  bool dense = dims.size() < 2 || n.index.scaleOf(dims[dims.size() - 2]) == p.size(*lane), isLong = p.size(*lane) >= kChunk;
  return dense || (isLong && n.index.scaleOf(dims[dims.size() - 2])) ? kBytesAhead / int64_t(bytesOf(p.inputs[n.arg].type)) : 0;
}

Value Emitter::loadNode(const Node &n) {
  Scalar type = p.inputs[n.arg].type;
  Type element = storedAs(type);
  Value memory = inputs[n.arg];
  if (!isVector(n)) {
    Value at = scalarIndex(n.index);
    if (Value inside = holds(n.guards, false)) // an address that exists, where the element is not wanted
      at = b.create<arith::SelectOp>(loc, inside, at, number(0));
    return fromMemory(b.create<memref::LoadOp>(loc, memory, at), type);
  }
  Value allowed = mask;
  if (Value inside = holds(n.guards, true)) {
    allowed = allowed ? b.create<arith::AndIOp>(loc, allowed, inside).getResult() : inside;
  }
  auto vectorType = vectorOf(element);
  auto nothing = [&]() -> Value { return math.constants(b.getZeroAttr(vectorType)); };
  // Neighbouring lanes read neighbouring elements?
  Index rest = n.index.without(*lane);
  if (n.index.scaleOf(*lane) == 1 && !variesByLane(rest)) {
    Value at = scalarIndex(n.index);
    if (int64_t ahead = allowed ? 0 : aheadOf(n))
      b.create<memref::PrefetchOp>(loc, memory, ValueRange{b.create<arith::AddIOp>(loc, at, number(ahead))}, false, 3, true);
    Value v = allowed ? b.create<vector::MaskedLoadOp>(loc, vectorType, memory, ValueRange{at}, allowed, nothing()).getResult()
                      : b.create<vector::LoadOp>(loc, vectorType, memory, ValueRange{at}).getResult();
    return fromMemory(v, type);
  }
  if (!variesByLane(n.index) && allowed) { // the guards alone differ
    Value at = scalarIndex(n.index);
    Value some = b.create<vector::ReductionOp>(loc, vector::CombiningKind::OR, allowed);
    at = b.create<arith::SelectOp>(loc, some, at, number(0));
    return b.create<vector::BroadcastOp>(loc, vectorOf(typeOf(n.type)), fromMemory(b.create<memref::LoadOp>(loc, memory, at), type));
  }
  if (!allowed) allowed = maskOf(lanes);
  Value v = b.create<vector::GatherOp>(loc, vectorType, memory, ValueRange{number(0)}, laneIndex(n.index), allowed, nothing());
  return fromMemory(v, type);
}

Value Emitter::reload(const Store &place) {
  assert(p.outputs[place.result].type == Scalar::F32 && "kept rows are as exact as registers");
  auto type = vectorOf(b.getF32Type());
  Value memory = outputs[place.result], at = scalarIndex(place.index);
  if (!lane) return b.create<memref::LoadOp>(loc, memory, at); // a term of a reduction (reduceInline)
  if (!mask) return b.create<vector::LoadOp>(loc, type, memory, ValueRange{at});
  return b.create<vector::MaskedLoadOp>(loc, type, memory, ValueRange{at}, mask, math.constants(b.getZeroAttr(type)));
}

void Emitter::store(unsigned output, const Index &index, int node) { store(output, index, lane ? vector(node) : value(node)); }

void Emitter::store(unsigned output, const Index &index, Value v) {
  v = toMemory(v, p.outputs[output].type);
  if (!lane) {
    b.create<memref::StoreOp>(loc, v, outputs[output], ValueRange{scalarIndex(index)});
    return;
  }
  assert((index.scaleOf(*lane) == 1 || p.size(*lane) == 1) && "stores follow the innermost dimension");
  Value at = scalarIndex(index);
  if (mask)
    b.create<vector::MaskedStoreOp>(loc, outputs[output], ValueRange{at}, mask, v);
  else
    b.create<vector::StoreOp>(loc, v, outputs[output], ValueRange{at});
}

void Emitter::storeScalar(unsigned output, Value at, Value v) {
  b.create<memref::StoreOp>(loc, toMemory(v, p.outputs[output].type), outputs[output], ValueRange{at});
}

} // namespace zero::codegen

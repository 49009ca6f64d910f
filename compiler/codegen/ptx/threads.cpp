//===- threads.cpp - threads of a GPU and what they share -------------------------------------------------===//
#include "compiler/codegen/ptx/gpu_emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace zero::codegen {

static constexpr int kAllOfTheWarp = -1, kSharedMemory = 3;

Value GpuEmitter::intrinsic(StringRef name, Type result, ValueRange operands) { return math.intrinsic(name, result, operands); }

Value GpuEmitter::special(StringRef name) {
  return b.create<arith::IndexCastUIOp>(loc, b.getIndexType(), intrinsic(name, b.getI32Type(), {}));
}

void GpuEmitter::barrier() {
  if (d.form == Division::Rows && d.team < d.threads)
    warpBarrier();
  else
    intrinsic("llvm.nvvm.barrier0", {}, {});
}

void GpuEmitter::warpBarrier() { intrinsic("llvm.nvvm.bar.warp.sync", {}, {math.whole(b.getI32Type(), kAllOfTheWarp)}); }

Value GpuEmitter::anyThread(Value condition) {
  Type i32 = b.getI32Type();
  Value any = intrinsic("llvm.nvvm.barrier0.or", i32, {b.create<arith::ExtUIOp>(loc, i32, condition)});
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, any, math.whole(i32, 0));
}

Value GpuEmitter::shuffle(Value v, unsigned bits) {
  Type type = v.getType(), i32 = b.getI32Type();
  unsigned width = type.getIntOrFloatBitWidth();
  auto exchange = [&](Value word) {
    return intrinsic("llvm.nvvm.shfl.sync.bfly.i32", i32,
                     {math.whole(i32, kAllOfTheWarp), word, math.whole(i32, int64_t(bits)), math.whole(i32, 31)});
  };
  if (width < 32) return b.create<arith::TruncIOp>(loc, type, exchange(b.create<arith::ExtUIOp>(loc, i32, v)));
  if (width == 32) return b.create<arith::BitcastOp>(loc, type, exchange(b.create<arith::BitcastOp>(loc, i32, v)));
  Type i64 = b.getI64Type();
  Value word = b.create<arith::BitcastOp>(loc, i64, v), half = math.whole(i64, 32);
  Value low = exchange(b.create<arith::TruncIOp>(loc, i32, word));
  Value high = exchange(b.create<arith::TruncIOp>(loc, i32, b.create<arith::ShRUIOp>(loc, word, half)));
  Value joined = b.create<arith::OrIOp>(loc, b.create<arith::ExtUIOp>(loc, i64, low),
                                        b.create<arith::ShLIOp>(loc, b.create<arith::ExtUIOp>(loc, i64, high), half));
  return b.create<arith::BitcastOp>(loc, type, joined);
}

/// In a butterfly: every thread of the team, or of its warps where it has several, gets the same bits, since both sides of each addition
/// commute.
Value GpuEmitter::joinWarp(Fn fn, Scalar type, Value v) {
  for (unsigned bits = std::min(d.team, 32u) / 2; bits > 0; bits /= 2) v = combine(fn, type, v, shuffle(v, bits));
  return v;
}

Value GpuEmitter::sharedArray(Type element, int64_t size, int64_t alignment) {
  if (element.isInteger(1)) element = b.getI8Type();
  // Where none is said, LLVM takes an array of 16 bytes and more to begin at a multiple of 16, and PTX gives it that of an element.
  if (!alignment) alignment = isa<IndexType>(element) ? 8 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  auto type = MemRefType::get({size}, element, MemRefLayoutAttrInterface(), b.getI64IntegerAttr(kSharedMemory));
  std::string name = p.name + "_shared_" + std::to_string(sharedArrays++);
  {
    OpBuilder::InsertionGuard guard(b);
    Operation *function = b.getInsertionBlock()->getParentOp();
    while (!isa<ModuleOp>(function->getParentOp())) function = function->getParentOp();
    b.setInsertionPoint(function);
    b.create<memref::GlobalOp>(loc, name, b.getStringAttr("private"), type, b.getUnitAttr(), false, b.getI64IntegerAttr(alignment));
  }
  return b.create<memref::GetGlobalOp>(loc, type, name);
}

void GpuEmitter::storeShared(Value array, Value at, Value v) {
  if (v.getType().isInteger(1)) v = b.create<arith::ExtUIOp>(loc, b.getI8Type(), v);
  b.create<memref::StoreOp>(loc, v, array, ValueRange{at});
}

Value GpuEmitter::loadShared(Value array, Value at) {
  Value v = b.create<memref::LoadOp>(loc, array, ValueRange{at});
  return v.getType().isInteger(8) ? b.create<arith::TruncIOp>(loc, b.getI1Type(), v).getResult() : v;
}

Value GpuEmitter::plus(Value x, Value y) { return b.create<arith::AddIOp>(loc, x, y); }
Value GpuEmitter::times(Value x, int64_t factor) { return factor == 1 ? x : b.create<arith::MulIOp>(loc, x, number(factor)).getResult(); }
Value GpuEmitter::quotient(Value x, int64_t divisor) { return divided(x, divisor, false, false); }
Value GpuEmitter::remainder(Value x, int64_t divisor) { return divided(x, divisor, true, false); }
Value GpuEmitter::below(Value x, Value y) { return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, x, y); }

Value GpuEmitter::add(Value x, Value y) { return b.create<arith::AddFOp>(loc, x, y); }
Value GpuEmitter::sub(Value x, Value y) { return b.create<arith::SubFOp>(loc, x, y); }
Value GpuEmitter::mul(Value x, Value y) { return b.create<arith::MulFOp>(loc, x, y); }
Value GpuEmitter::is(arith::CmpFPredicate predicate, Value x, Value y) { return b.create<arith::CmpFOp>(loc, predicate, x, y); }
Value GpuEmitter::select(Value condition, Value x, Value y) { return b.create<arith::SelectOp>(loc, condition, x, y); }

} // namespace zero::codegen

//===- math_halves.cpp - numbers of half precision to f32 and back -----------------------------------===//
#include "compiler/codegen/math.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace zero::codegen {

Value Math::widen(Value half) {
  Type single = shaped(half, b.getF32Type());
  if (!getElementTypeOrSelf(half.getType()).isInteger(16)) return b.create<arith::ExtFOp>(loc, single, half);
  if (auto v = dyn_cast<VectorType>(half.getType()); v && nvidia && v.getNumElements() % 2 == 0) return widenPairs(half);
  Type ints = shaped(half, b.getI32Type());
  Value bits = b.create<arith::ExtUIOp>(loc, ints, half);
  return b.create<arith::BitcastOp>(loc, single, b.create<arith::ShLIOp>(loc, bits, whole(ints, 16)));
}

/// Of two in a word the lower one is shifted up, and the higher one is there but for the bits below it.
Value Math::widenPairs(Value halves) {
  int64_t lanes = cast<VectorType>(halves.getType()).getNumElements();
  Value words = b.create<vector::BitCastOp>(loc, VectorType::get({lanes / 2}, b.getI32Type()), halves);
  SmallVector<Value> bits;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    Value word = b.create<vector::ExtractOp>(loc, words, i);
    bits.push_back(b.create<arith::ShLIOp>(loc, word, whole(b.getI32Type(), 16)));
    bits.push_back(b.create<arith::AndIOp>(loc, word, whole(b.getI32Type(), int64_t(0xffff0000))));
  }
  Value ints = b.create<vector::FromElementsOp>(loc, VectorType::get({lanes}, b.getI32Type()), bits);
  return b.create<arith::BitcastOp>(loc, VectorType::get({lanes}, b.getF32Type()), ints);
}

/// To nearest, ties to even; a NaN stays one.
Value Math::narrow(Value single, Type half) {
  Type to = shaped(single, half);
  if (!half.isInteger(16)) return b.create<arith::TruncFOp>(loc, to, single);
  if (nvidia) return narrowByPairs(single);
  Type ints = shaped(single, b.getI32Type());
  Value bits = b.create<arith::BitcastOp>(loc, ints, single), sixteen = whole(ints, 16);
  Value odd = b.create<arith::AndIOp>(loc, b.create<arith::ShRUIOp>(loc, bits, sixteen), whole(ints, 1));
  Value rounded = b.create<arith::AddIOp>(loc, b.create<arith::AddIOp>(loc, bits, odd), whole(ints, 0x7fff));
  Value nan = b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, single, single);
  rounded = b.create<arith::SelectOp>(loc, nan, whole(ints, 0x7fc00000), rounded);
  return b.create<arith::TruncIOp>(loc, to, b.create<arith::ShRUIOp>(loc, rounded, sixteen));
}

Value Math::packed(Value low, Value high) {
  Value two = intrinsic("llvm.nvvm.ff2bf16x2.rn", VectorType::get({2}, b.getBF16Type()), {high, low});
  return b.create<LLVM::BitcastOp>(loc, b.getI32Type(), two);
}

Value Math::narrowByPairs(Value single) {
  Type i16 = b.getIntegerType(16);
  auto v = dyn_cast<VectorType>(single.getType());
  if (!v) return b.create<arith::TruncIOp>(loc, i16, packed(single, constants(b.getF32FloatAttr(0))));
  int64_t lanes = v.getNumElements();
  auto lane = [&](int64_t i) -> Value {
    return i < lanes ? b.create<vector::ExtractOp>(loc, single, i).getResult() : constants(b.getF32FloatAttr(0));
  };
  SmallVector<Value> pairs;
  for (int64_t i = 0; i < lanes; i += 2) pairs.push_back(packed(lane(i), lane(i + 1)));
  if (lanes == 1) return b.create<vector::BroadcastOp>(loc, VectorType::get({1}, i16), b.create<arith::TruncIOp>(loc, i16, pairs[0]));
  Value words = b.create<vector::FromElementsOp>(loc, VectorType::get({int64_t(pairs.size())}, b.getI32Type()), pairs);
  return b.create<vector::BitCastOp>(loc, VectorType::get({lanes}, i16), words);
}

} // namespace zero::codegen

//===- math.h - elementary functions as straight-line vector code --------------------------------===//
// Polynomials in fused multiply-adds: the same bits for a scalar, a full vector and a masked one, on every
// target, and no call of a library. Errors are a few units in the last place (test/unit/codegen_test.cpp measures them).
#pragma once
#include "compiler/codegen/constants.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace zero::codegen {

/// Operations on f32 (or, where said, any float) values that are scalars or vectors; all operands of one call have one type.
struct Math {
  mlir::OpBuilder &b;
  mlir::Location loc;
  bool avx512 = false; // one instruction for what otherwise takes a few; the bits are the same
  bool nvidia = false; // the same, of a GPU's; a NaN may be another NaN
  // Exponentials by a GPU's unit for them, off by 2^-22 and by what rounding x log2(e) makes of it, and by them sigmoids, tanh and erf (its
  // absolute error is 10^-6): other bits, in a few instructions. For what is made of half precision, which is off by 2^-9 to begin with.
  bool approximate = false;
  Constants constants{b, loc};
  static constexpr double kLog2e = 1.44269504088896341;

  mlir::Value constant(mlir::Value like, double number);
  mlir::Value whole(mlir::Type intType, int64_t number);
  /// i32 or i1 (or whatever `element`) in the shape of `like`.
  mlir::Type shaped(mlir::Value like, mlir::Type element);

  mlir::Value exp(mlir::Value x) { return exponential(x, false); }
  /// e^(x - shift); approximated, it is one instruction less.
  mlir::Value exp(mlir::Value x, mlir::Value shift);
  mlir::Value log(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value sigmoid(mlir::Value x);
  mlir::Value sin(mlir::Value x) { return sine(x, 0); }
  mlir::Value cos(mlir::Value x) { return sine(x, 1); }
  mlir::Value rsqrt(mlir::Value x); // any float
  mlir::Value pow(mlir::Value x, mlir::Value y);
  mlir::Value pow(mlir::Value x, double y); // any float for y of -1, ±0.5, 0, 1, 2, 3, 4
  static bool simplePower(double y);

  /// Number (seed, id, counter) of compiler/nn/random.h; `seed` is a scalar i64, `counter` i64 of any shape.
  mlir::Value random(mlir::Value seed, uint64_t id, mlir::Value counter);

  /// Half precision from and to f32, without a library: bf16, whose bits come and go as i16, by integer arithmetic.
  mlir::Value widen(mlir::Value half);
  mlir::Value narrow(mlir::Value single, mlir::Type half);
  /// Two f32 as the bf16 of an i32, in one instruction of sm_80.
  mlir::Value packed(mlir::Value low, mlir::Value high);
  /// A call of LLVM's intrinsic, of no value for no `result`.
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands);

private:
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<double> highestFirst);
  mlir::Value exponential(mlir::Value x, bool negated);
  mlir::Value approximatePower(mlir::Value x);
  mlir::Value approximateInverse(mlir::Value x);
  mlir::Value approximateErf(mlir::Value x);
  mlir::Value approximateTanh(mlir::Value x);
  mlir::Value approximateExp(mlir::Value x, mlir::Value shift);
  mlir::Value widenPairs(mlir::Value halves);
  mlir::Value narrowByPairs(mlir::Value single);
  /// A function of one f32, of each lane.
  mlir::Value unit(llvm::StringRef intrinsic, mlir::Value x);
  mlir::Value sine(mlir::Value x, int quarter);
  mlir::Value mix(mlir::Value x);
};

} // namespace zero::codegen

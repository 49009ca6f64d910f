//===- math_approximate.cpp - elementary functions by a GPU's units for them ------------------------------===//
// For kernels of half precision (Math::approximate), where those of math.cpp take longer than memory does.
#include "compiler/codegen/math.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace zero::codegen {

namespace {
// log2(1 - erf t) / t for 0 <= t <= 3.9, minimax in the error of erf (6e-7), highest power first. Beyond, it goes on falling.
constexpr double kErf[] = {-2.9439775e-3, 2.9589478e-2, -0.14866504, -0.91850954, -1.627889};
// Below it tanh x is x - x^3 / 3, but for 2^-19 of it.
constexpr double kLinear = 0.0625;
} // namespace

/// 2^x.
Value Math::approximatePower(Value x) { return unit("llvm.nvvm.ex2.approx.ftz.f", x); }

Value Math::approximateInverse(Value x) { return unit("llvm.nvvm.rcp.approx.ftz.f", x); }

/// 1 - 2^(t p(t)) with t = |x|. The error is absolute: small results lose digits, which GELU, that adds 1, does not have.
Value Math::approximateErf(Value x) {
  Value t = b.create<math::AbsFOp>(loc, x);
  Value rest = approximatePower(b.create<arith::MulFOp>(loc, t, polynomial(t, kErf)));
  Value positive = b.create<arith::SubFOp>(loc, constant(x, 1.0), rest);
  // It has no sign yet: to add that is one instruction, where copysign is a comparison and a choice.
  Type ints = shaped(x, b.getI32Type());
  Value sign = b.create<arith::AndIOp>(loc, b.create<arith::BitcastOp>(loc, ints, x), whole(ints, int64_t(0x80000000)));
  return b.create<arith::BitcastOp>(loc, x.getType(),
                                    b.create<arith::OrIOp>(loc, b.create<arith::BitcastOp>(loc, ints, positive), sign).getResult());
}

/// 1 - 2 / (1 + e^2x), whose error is absolute; near 0 the first terms of the series.
Value Math::approximateTanh(Value x) {
  Value grown = approximatePower(b.create<arith::MulFOp>(loc, x, constant(x, 2 * kLog2e)));
  Value inverse = approximateInverse(b.create<arith::AddFOp>(loc, grown, constant(x, 1.0)));
  Value far = fma(inverse, constant(x, -2.0), constant(x, 1.0));
  Value near = b.create<arith::MulFOp>(loc, x, polynomial(b.create<arith::MulFOp>(loc, x, x), {-1.0 / 3, 1.0}));
  Value isNear = b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, b.create<math::AbsFOp>(loc, x), constant(x, kLinear));
  return b.create<arith::SelectOp>(loc, isNear, near, far);
}

/// e^(x - shift).
Value Math::approximateExp(Value x, Value shift) {
  // Masks are the lowest number there is, of which no multiple is finite. Where it is a row's maximum, the differences are 0 or as low,
  // whatever they are multiplied by.
  Value low = b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, shift, constant(x, -1e30));
  Value factor = b.create<arith::SelectOp>(loc, low, constant(x, 1), constant(x, kLog2e));
  Value less = b.create<arith::NegFOp>(loc, b.create<arith::MulFOp>(loc, shift, factor));
  return approximatePower(fma(x, factor, less));
}

} // namespace zero::codegen

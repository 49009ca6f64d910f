//===- math.cpp - elementary functions as straight-line vector code ------------------------------===//
#include "compiler/codegen/math.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;

namespace zero::codegen {

Type Math::shaped(Value like, Type element) {
  if (auto v = dyn_cast<VectorType>(like.getType())) return VectorType::get(v.getShape(), element);
  return element;
}

Value Math::constant(Value like, double number) {
  Type element = getElementTypeOrSelf(like.getType());
  TypedAttr one = b.getFloatAttr(element, number);
  if (auto v = dyn_cast<VectorType>(like.getType())) one = DenseElementsAttr::get(v, Attribute(one));
  return constants(one);
}

Value Math::whole(Type type, int64_t number) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr one = b.getIntegerAttr(element, APInt(element.getIntOrFloatBitWidth(), uint64_t(number), true).getSExtValue());
  if (auto v = dyn_cast<VectorType>(type)) one = DenseElementsAttr::get(v, Attribute(one));
  return constants(one);
}

Value Math::fma(Value x, Value y, Value z) { return b.create<math::FmaOp>(loc, x, y, z); }

Value Math::polynomial(Value x, ArrayRef<double> highestFirst) {
  Value sum = constant(x, highestFirst.front());
  for (double c : highestFirst.drop_front()) sum = fma(sum, x, constant(x, c));
  return sum;
}

Value Math::intrinsic(StringRef name, Type result, ValueRange operands) {
  auto call = b.create<LLVM::CallIntrinsicOp>(loc, result ? TypeRange{result} : TypeRange{}, b.getStringAttr(name), operands,
                                              LLVM::FastmathFlagsAttr::get(b.getContext(), LLVM::FastmathFlags::none));
  return result ? call->getResult(0) : Value();
}

Value Math::unit(StringRef name, Value x) {
  auto v = dyn_cast<VectorType>(x.getType());
  if (!v) return intrinsic(name, x.getType(), {x});
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < v.getNumElements(); ++i)
    lanes.push_back(intrinsic(name, v.getElementType(), {b.create<vector::ExtractOp>(loc, x, i).getResult()}));
  return b.create<vector::FromElementsOp>(loc, v, lanes);
}

namespace {
// The product of a number with log2(e), rounded to a whole one by adding a number this large: 1.5 * 2^23. The result's low bits are the
// whole number, on top of what is added to it here.
constexpr double kRound = 12582912.0;
// ln 2 in two parts; multiples of the first by whole numbers below 2^9 are exact.
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723212e-6;
// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, minimax in the relative error of e^r (3e-9), highest power first.
constexpr double kExp[] = {1.3820136e-3, 8.368686e-3, 4.1668274e-2, 0.16666521, 0.49999994};
} // namespace

/// e^x (e^-x if `negated`) = 2^n e^r with |r| <= ln(2) / 2, a little more where x log2(e) is rounded. Results below twice the smallest
/// normal number are 0: a subnormal one costs a processor a hundred instructions' time, and masked scores have them by the row.
Value Math::exponential(Value x, bool negated) {
  if (approximate) return approximatePower(b.create<arith::MulFOp>(loc, x, constant(x, negated ? -kLog2e : kLog2e)));
  double sign = negated ? -1 : 1, most = 89.0, least = -86.643394; // above infinity, below 0; NaN is kept
  auto is = [&](arith::CmpFPredicate predicate, Value y) -> Value { return b.create<arith::CmpFOp>(loc, predicate, x, y); };
  Value highest = constant(x, sign * most), lowest = constant(x, sign * least), c;
  using P = arith::CmpFPredicate;
  Value wanted = is(negated ? P::ULE : P::UGE, lowest);
  if (nvidia)
    c = negated ? b.create<arith::MaximumFOp>(loc, x, highest).getResult() : b.create<arith::MinimumFOp>(loc, x, highest).getResult();
  else
    c = b.create<arith::SelectOp>(loc, is(negated ? P::OLT : P::OGT, highest), highest, x);
  Value round = constant(x, kRound), shifted = fma(c, constant(x, sign * kLog2e), round);
  Value n = b.create<arith::SubFOp>(loc, shifted, round);
  // r, or -r: of a negated argument the remainder too has the other sign.
  Value r = fma(n, constant(x, -sign * kLn2High), c);
  r = fma(n, constant(x, -sign * kLn2Low), r);
  auto v = dyn_cast<VectorType>(x.getType());
  bool scales = v && v.getNumElements() == 16 && avx512;
  // e^r; or twice that and 2^(n - 1), since 2^128 is no number. Where wanted n lies in [-125, 128].
  double times = scales ? 1 : 2;
  SmallVector<double> p;
  double factor = std::size(kExp) % 2 ? times : times * sign;
  for (double k : kExp) p.push_back(k * factor), factor *= sign;
  p.append({times * sign, times});
  Value grown = polynomial(r, p);
  if (scales) {
    Value mask = b.create<LLVM::BitcastOp>(loc, b.getIntegerType(16), wanted), asUsual = constants(b.getI32IntegerAttr(4));
    return intrinsic("llvm.x86.avx512.mask.scalef.ps.512", v, {grown, n, constant(x, 0.0), mask, asUsual});
  }
  // The low bits of `shifted` are n. Where nothing is wanted the power may be anything, and on a processor a subnormal product that nobody
  // reads would take as long as one that counts.
  Type ints = shaped(x, b.getI32Type());
  Value exponent = b.create<arith::ShLIOp>(loc, b.create<arith::BitcastOp>(loc, ints, shifted), whole(ints, 23));
  Value power = b.create<arith::BitcastOp>(loc, x.getType(), b.create<arith::AddIOp>(loc, exponent, whole(ints, 126 << 23)).getResult());
  if (!nvidia) power = b.create<arith::SelectOp>(loc, wanted, power, constant(x, 1.0));
  return b.create<arith::SelectOp>(loc, wanted, b.create<arith::MulFOp>(loc, grown, power), constant(x, 0.0));
}

/// log x = e log 2 + log(1 + f) with 1 + f in [2/3, 4/3).
Value Math::log(Value x) {
  Type ints = shaped(x, b.getI32Type());
  Value tiny = b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, x, constant(x, 1.17549435e-38));
  Value a = b.create<arith::SelectOp>(loc, tiny, b.create<arith::MulFOp>(loc, x, constant(x, 8388608.0)), x);
  Value extra = b.create<arith::SelectOp>(loc, tiny, constant(x, -23.0), constant(x, 0.0));
  Value bits = b.create<arith::BitcastOp>(loc, ints, a);
  Value e =
      b.create<arith::AndIOp>(loc, b.create<arith::SubIOp>(loc, bits, whole(ints, 0x3f2aaaab)), whole(ints, int64_t(int32_t(0xff800000))));
  Value m = b.create<arith::BitcastOp>(loc, x.getType(), b.create<arith::SubIOp>(loc, bits, e).getResult());
  Value exponent = fma(b.create<arith::SIToFPOp>(loc, x.getType(), e), constant(x, 1.1920928955078125e-7), extra);
  Value f = b.create<arith::SubFOp>(loc, m, constant(x, 1.0));
  Value s = b.create<arith::MulFOp>(loc, f, f);
  Value r = polynomial(s, {-0.130310059, -0.121483512, -0.166846126, -0.249996200});
  Value t = polynomial(s, {0.140869141, 0.139814854, 0.200120345});
  r = fma(t, f, r);
  r = fma(r, f, constant(x, 0.333331972));
  r = fma(r, f, constant(x, -0.5));
  r = fma(r, s, f);
  r = fma(exponent, constant(x, 0.693147182464599609375), r);
  // Zero, negative numbers, infinity and NaN.
  Value zero = constant(x, 0.0), infinity = constant(x, INFINITY);
  r = b.create<arith::SelectOp>(loc, b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, x, zero), constant(x, -INFINITY), r);
  r = b.create<arith::SelectOp>(loc, b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::ULT, x, zero), constant(x, NAN), r);
  return b.create<arith::SelectOp>(loc, b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, x, infinity), infinity, r);
}

/// tanh |x| = m / (m + 2) with m = e^2|x| - 1 = 2^n (e^r - 1) + (2^n - 1): accurate near 0, and near 1 as good as f32 can
/// say, which derivatives made of 1 - tanh^2 depend on.
Value Math::tanh(Value x) {
  if (approximate) return approximateTanh(x);
  Value t = b.create<math::AbsFOp>(loc, x), bound = constant(x, 9.1); // beyond: 1
  t = b.create<arith::SelectOp>(loc, b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OGT, t, bound), bound, t);
  // n is rounded on top of 128, so that its bits are those of the exponent of 2^(n + 1).
  Value round = constant(x, kRound + 128);
  Value shifted = fma(t, constant(x, 2 * kLog2e), round), n = b.create<arith::SubFOp>(loc, shifted, round);
  Value half = fma(n, constant(x, -kLn2High / 2), t); // r / 2
  half = fma(n, constant(x, -kLn2Low / 2), half);
  SmallVector<double> p; // of r / 2, for (e^r - 1) / 2
  for (auto [i, k] : llvm::enumerate(llvm::reverse(kExp))) p.insert(p.begin(), std::ldexp(k, int(i) + 1));
  Value grown = fma(b.create<arith::MulFOp>(loc, half, half), polynomial(half, p), half);
  Type ints = shaped(x, b.getI32Type());
  Value bits = b.create<arith::ShLIOp>(loc, b.create<arith::BitcastOp>(loc, ints, shifted), whole(ints, 23));
  Value power = b.create<arith::BitcastOp>(loc, x.getType(), bits);
  Value m = fma(power, grown, fma(power, constant(x, 0.5), constant(x, -1.0)));
  return b.create<math::CopySignOp>(loc, b.create<arith::DivFOp>(loc, m, b.create<arith::AddFOp>(loc, m, constant(x, 2.0))), x);
}

/// An odd polynomial near 0, 1 - e^(polynomial) beyond.
Value Math::erf(Value x) {
  if (approximate) return approximateErf(x);
  Value t = b.create<math::AbsFOp>(loc, x), s = b.create<arith::MulFOp>(loc, x, x);
  Value far = fma(constant(x, -1.72853470e-5), t, constant(x, 3.83197126e-4));
  Value u = fma(constant(x, -3.88396438e-3), t, constant(x, 2.42546219e-2));
  far = fma(far, s, u);
  for (double c : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1}) far = fma(far, t, constant(x, c));
  far = fma(far, t, b.create<arith::NegFOp>(loc, t));
  // Beyond 4 the polynomial has no meaning and the result is 1.
  far = b.create<arith::SelectOp>(loc, b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OGT, t, constant(x, 4.0)), constant(x, -100.0),
                                  far);
  far = b.create<math::CopySignOp>(loc, b.create<arith::SubFOp>(loc, constant(x, 1.0), exp(far)), x);
  Value near = polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  near = fma(near, x, x);
  return b.create<arith::SelectOp>(loc, b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OGT, t, constant(x, 0.927734375)), far, near);
}

Value Math::sigmoid(Value x) {
  Value one = constant(x, 1.0), sum = b.create<arith::AddFOp>(loc, one, exponential(x, true));
  if (approximate) return approximateInverse(sum);
  return b.create<arith::DivFOp>(loc, one, sum);
}

/// Reduction by multiples of pi/2 in three parts, twice: of a large x the first quotient is off by its own rounding, and leaves more than a
/// quarter turn. Exact to 1e-7 up to 10^7 and to 1e-5 up to 10^9, where the next f32 is ten turns away.
Value Math::sine(Value x, int quarter) {
  Type ints = shaped(x, b.getI32Type());
  Value q = b.create<math::RoundEvenOp>(loc, b.create<arith::MulFOp>(loc, x, constant(x, 0.636619772367581343)));
  Value r = x;
  auto take = [&](Value quarters) {
    for (double part : {-1.57079625129699707, -7.54978941586159635e-08, -5.39030285815811905e-15}) r = fma(quarters, constant(x, part), r);
  };
  take(q);
  Value more = b.create<math::RoundEvenOp>(loc, b.create<arith::MulFOp>(loc, r, constant(x, 0.636619772367581343)));
  take(more);
  // Of the quarters the rest by 4, which is exact and fits an integer.
  q = fma(b.create<math::FloorOp>(loc, b.create<arith::MulFOp>(loc, q, constant(x, 0.25))), constant(x, -4), q);
  q = b.create<arith::AddFOp>(loc, q, more);
  Value s = b.create<arith::MulFOp>(loc, r, r);
  Value sinus = fma(b.create<arith::MulFOp>(loc, polynomial(s, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), s), r, r);
  Value cosinus = polynomial(s, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1.0});
  Value n = b.create<arith::AddIOp>(loc, b.create<arith::FPToSIOp>(loc, ints, q), whole(ints, quarter));
  auto bit = [&](int64_t mask) -> Value {
    return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, b.create<arith::AndIOp>(loc, n, whole(ints, mask)), whole(ints, 0));
  };
  Value y = b.create<arith::SelectOp>(loc, bit(1), cosinus, sinus);
  return b.create<arith::SelectOp>(loc, bit(2), b.create<arith::NegFOp>(loc, y), y);
}

Value Math::rsqrt(Value x) { return b.create<arith::DivFOp>(loc, constant(x, 1.0), b.create<math::SqrtOp>(loc, x)); }

bool Math::simplePower(double y) { return y == -1 || y == -0.5 || y == 0 || y == 0.5 || y == 1 || y == 2 || y == 3 || y == 4; }

Value Math::pow(Value x, double y) {
  auto times = [&](Value u, Value v) -> Value { return b.create<arith::MulFOp>(loc, u, v); };
  if (y == 0) return constant(x, 1.0);
  if (y == 1) return x;
  if (y == 2) return times(x, x);
  if (y == 3) return times(times(x, x), x);
  if (y == 4) return times(times(x, x), times(x, x));
  if (y == -1) return b.create<arith::DivFOp>(loc, constant(x, 1.0), x);
  if (y == 0.5) return b.create<math::SqrtOp>(loc, x);
  if (y == -0.5) return rsqrt(x);
  return pow(x, constant(x, y));
}

/// e^(y log |x|), with the sign of odd powers of negative numbers.
Value Math::pow(Value x, Value y) {
  auto compare = [&](arith::CmpFPredicate p, Value u, Value v) -> Value { return b.create<arith::CmpFOp>(loc, p, u, v); };
  auto select = [&](Value c, Value u, Value v) -> Value { return b.create<arith::SelectOp>(loc, c, u, v); };
  Value zero = constant(x, 0.0);
  Value r = exp(b.create<arith::MulFOp>(loc, y, log(b.create<math::AbsFOp>(loc, x))));
  Value half = b.create<arith::MulFOp>(loc, y, constant(x, 0.5));
  Value isWhole = compare(arith::CmpFPredicate::OEQ, b.create<math::FloorOp>(loc, y), y);
  Value isEven = compare(arith::CmpFPredicate::OEQ, b.create<math::FloorOp>(loc, half), half);
  Value negative = select(isWhole, select(isEven, r, b.create<arith::NegFOp>(loc, r)), constant(x, NAN));
  r = select(compare(arith::CmpFPredicate::OLT, x, zero), negative, r);
  return select(compare(arith::CmpFPredicate::OEQ, y, zero), constant(x, 1.0), r);
}

Value Math::mix(Value x) {
  Type t = x.getType();
  auto shiftXor = [&](int64_t n) { x = b.create<arith::XOrIOp>(loc, x, b.create<arith::ShRUIOp>(loc, x, whole(t, n))); };
  shiftXor(16);
  x = b.create<arith::MulIOp>(loc, x, whole(t, 0x7feb352d));
  shiftXor(15);
  x = b.create<arith::MulIOp>(loc, x, whole(t, int32_t(0x846ca68b)));
  shiftXor(16);
  return x;
}

Value Math::random(Value seed, uint64_t id, Value counter) {
  Type i32 = b.getI32Type(), ints = shaped(counter, i32);
  auto low = [&](Value v) -> Value { return b.create<arith::TruncIOp>(loc, shaped(v, i32), v); };
  auto high = [&](Value v) -> Value { return low(b.create<arith::ShRUIOp>(loc, v, whole(v.getType(), 32))); };
  auto splat = [&](Value v) -> Value { return isa<VectorType>(ints) ? b.create<vector::BroadcastOp>(loc, ints, v).getResult() : v; };
  Value salt = mix(whole(i32, int32_t(uint32_t(id) + 0x9e3779b9u)));
  Value k0 = mix(b.create<arith::XOrIOp>(loc, low(seed), mix(b.create<arith::XOrIOp>(loc, high(seed), salt))));
  Value k1 = mix(b.create<arith::AddIOp>(loc, k0, whole(i32, int32_t(0x9e3779b9u))));
  Value x = b.create<arith::XOrIOp>(loc, low(counter), splat(k0));
  auto shiftXor = [&](int64_t n) { x = b.create<arith::XOrIOp>(loc, x, b.create<arith::ShRUIOp>(loc, x, whole(ints, n))); };
  shiftXor(16);
  x = b.create<arith::MulIOp>(loc, x, whole(ints, 0x7feb352d));
  x = b.create<arith::AddIOp>(loc, x, b.create<arith::AddIOp>(loc, splat(k1), high(counter)));
  shiftXor(15);
  x = b.create<arith::MulIOp>(loc, x, whole(ints, int32_t(0x846ca68b)));
  shiftXor(16);
  Value number = b.create<arith::SIToFPOp>(loc, shaped(counter, b.getF32Type()), b.create<arith::ShRUIOp>(loc, x, whole(ints, 8)));
  return b.create<arith::MulFOp>(loc, number, constant(number, 0x1p-24));
}

Value Math::exp(Value x, Value shift) {
  if (approximate) return approximateExp(x, shift);
  return exp(b.create<arith::SubFOp>(loc, x, shift));
}

} // namespace zero::codegen

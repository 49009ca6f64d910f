//===- elementwise.cpp - operations that work element by element ---------------------------------===//
#include "compiler/nn/eval/kernels.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace zero::nn::eval {
namespace {

template <typename T> constexpr bool isFloat = std::is_floating_point_v<T>;
template <typename T> constexpr bool isBool = std::is_same_v<T, uint8_t>;

/// Integers wrap; done unsigned, where wrapping is defined.
template <typename T, typename F> T wrapping(T a, T b, F f) {
  if constexpr (isFloat<T>)
    return f(a, b);
  else
    return T(f(std::make_unsigned_t<T>(a), std::make_unsigned_t<T>(b)));
}

template <typename In, typename Out, typename F> LogicalResult map(Operands in, Results out, F f) {
  auto x = in[0]->data<In>();
  auto y = out[0].data<Out>();
  for (size_t i = 0, n = y.size(); i < n; ++i) y[i] = f(x[i]);
  return success();
}

template <typename In, typename Out, typename F> LogicalResult map2(Operands in, Results out, F f) {
  auto a = in[0]->data<In>(), b = in[1]->data<In>();
  auto y = out[0].data<Out>();
  for (size_t i = 0, n = y.size(); i < n; ++i) y[i] = f(a[i], b[i]);
  return success();
}

/// Unary operation of floats.
template <typename F> LogicalResult mapFloat(Operands in, Results out, F f) {
  return withFloat(in[0]->elementType(), [&](auto e) { return map<decltype(e), decltype(e)>(in, out, f); });
}

/// Binary arithmetic of floats and integers; booleans have none.
template <typename F> LogicalResult arithmetic(Operation *op, Operands in, Results out, F f) {
  return withElement(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    if constexpr (isBool<T>)
      return op->emitOpError() << "has no meaning on booleans";
    else
      return map2<T, T>(in, out, [&](T a, T b) { return T(wrapping(a, b, f)); });
  });
}

LogicalResult divide(Operation *op, Operands in, Results out) {
  return withElement(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    if constexpr (isFloat<T>)
      return map2<T, T>(in, out, [](T a, T b) { return a / b; });
    else if constexpr (isBool<T>)
      return op->emitOpError() << "has no meaning on booleans";
    else if (llvm::is_contained(in[1]->data<T>(), T(0)))
      return op->emitOpError() << "divides an integer by zero";
    else
      return map2<T, T>(in, out, [](T a, T b) { return b == -1 ? wrapping(T(0), a, std::minus<>()) : T(a / b); });
  });
}

LogicalResult modulo(Operation *op, Operands in, Results out) {
  return withElement(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    if constexpr (isFloat<T> || isBool<T>)
      return op->emitOpError() << "is for integers";
    else if (llvm::is_contained(in[1]->data<T>(), T(0)))
      return op->emitOpError() << "divides an integer by zero";
    else
      return map2<T, T>(in, out, [](T a, T b) {
        T r = b == -1 ? T(0) : T(a % b);
        return T(r != 0 && (r < 0) != (b < 0) ? r + b : r);
      });
  });
}

/// The larger (or smaller) operand, NaN if either is NaN.
template <typename Less> LogicalResult extreme(Operands in, Results out, Less less) {
  return withElement(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    return map2<T, T>(in, out, [&](T a, T b) { return less(a, b) || a != a ? a : b; });
  });
}

LogicalResult compare(CompareOp op, Operands in, Results out) {
  return withElement(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    switch (op.getPredicate()) {
    case Predicate::eq:
      return map2<T, uint8_t>(in, out, std::equal_to<T>());
    case Predicate::ne:
      return map2<T, uint8_t>(in, out, std::not_equal_to<T>());
    case Predicate::lt:
      return map2<T, uint8_t>(in, out, std::less<T>());
    case Predicate::le:
      return map2<T, uint8_t>(in, out, std::less_equal<T>());
    case Predicate::gt:
      return map2<T, uint8_t>(in, out, std::greater<T>());
    case Predicate::ge:
      return map2<T, uint8_t>(in, out, std::greater_equal<T>());
    }
    return failure();
  });
}

LogicalResult select(Operands in, Results out) {
  return withElement(out[0].elementType(), [&](auto e) {
    using T = decltype(e);
    auto c = in[0]->data<uint8_t>();
    auto a = in[1]->data<T>(), b = in[2]->data<T>();
    auto y = out[0].data<T>();
    for (size_t i = 0, n = y.size(); i < n; ++i) y[i] = c[i] ? a[i] : b[i];
    return success();
  });
}

LogicalResult negate(Operation *op, Operands in, Results out) {
  return withElement(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    if constexpr (isFloat<T>)
      return map<T, T>(in, out, [](T a) { return -a; });
    else if constexpr (isBool<T>)
      return op->emitOpError() << "has no meaning on booleans";
    else
      return map<T, T>(in, out, [](T a) { return wrapping(T(0), a, std::minus<>()); });
  });
}

LogicalResult absolute(Operands in, Results out) {
  return withElement(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    if constexpr (isFloat<T>)
      return map<T, T>(in, out, [](T a) { return std::abs(a); });
    else if constexpr (isBool<T>)
      return map<T, T>(in, out, [](T a) { return a; });
    else
      return map<T, T>(in, out, [](T a) { return a < 0 ? wrapping(T(0), a, std::minus<>()) : a; });
  });
}

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

double gelu(double x, bool tanh) {
  return tanh ? 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
              : 0.5 * x * (1 + std::erf(x * 0.7071067811865476));
}

} // namespace

LogicalResult elementwise(Operation *op, Operands in, Results out) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<AddOp>([&](auto) { return arithmetic(op, in, out, std::plus<>()); })
      .Case<SubOp>([&](auto) { return arithmetic(op, in, out, std::minus<>()); })
      .Case<MulOp>([&](auto) { return arithmetic(op, in, out, std::multiplies<>()); })
      .Case<DivOp>([&](auto) { return divide(op, in, out); })
      .Case<ModOp>([&](auto) { return modulo(op, in, out); })
      .Case<PowOp>([&](auto) {
        return withFloat(in[0]->elementType(), [&](auto e) {
          using T = decltype(e);
          return map2<T, T>(in, out, [](T a, T b) { return std::pow(a, b); });
        });
      })
      .Case<MaxOp>([&](auto) { return extreme(in, out, std::greater<>()); })
      .Case<MinOp>([&](auto) { return extreme(in, out, std::less<>()); })
      .Case<AndOp>([&](auto) { return map2<uint8_t, uint8_t>(in, out, std::bit_and<>()); })
      .Case<OrOp>([&](auto) { return map2<uint8_t, uint8_t>(in, out, std::bit_or<>()); })
      .Case<XorOp>([&](auto) { return map2<uint8_t, uint8_t>(in, out, std::bit_xor<>()); })
      .Case<NotOp>([&](auto) { return map<uint8_t, uint8_t>(in, out, [](uint8_t a) { return uint8_t(!a); }); })
      .Case<NegOp>([&](auto) { return negate(op, in, out); })
      .Case<AbsOp>([&](auto) { return absolute(in, out); })
      .Case<ExpOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::exp(x); }); })
      .Case<LogOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::log(x); }); })
      .Case<SqrtOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::sqrt(x); }); })
      .Case<RsqrtOp>([&](auto) { return mapFloat(in, out, [](auto x) { return 1 / std::sqrt(double(x)); }); })
      .Case<TanhOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::tanh(x); }); })
      .Case<ErfOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::erf(x); }); })
      .Case<SinOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::sin(x); }); })
      .Case<CosOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::cos(x); }); })
      .Case<FloorOp>([&](auto) { return mapFloat(in, out, [](auto x) { return std::floor(x); }); })
      .Case<SigmoidOp>([&](auto) { return mapFloat(in, out, [](auto x) { return sigmoid(x); }); })
      .Case<SiluOp>([&](auto) { return mapFloat(in, out, [](auto x) { return x * sigmoid(x); }); })
      .Case<GeluOp>([&](GeluOp g) {
        bool tanh = g.getKind() == GeluKind::tanh;
        return mapFloat(in, out, [tanh](auto x) { return gelu(x, tanh); });
      })
      .Case<IsNanOp>([&](auto) {
        return withFloat(in[0]->elementType(),
                         [&](auto e) { return map<decltype(e), uint8_t>(in, out, [](auto x) { return uint8_t(x != x); }); });
      })
      .Case<CompareOp>([&](CompareOp c) { return compare(c, in, out); })
      .Case<SelectOp>([&](auto) { return select(in, out); })
      .Case<CastOp>([&](auto) {
        out[0] = in[0]->cast(out[0].elementType());
        return success();
      })
      .Default([](Operation *unknown) -> LogicalResult { return unknown->emitOpError() << "has no rule in the interpreter"; });
}

} // namespace zero::nn::eval

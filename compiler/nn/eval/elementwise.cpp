//===- elementwise.cpp - formulas of elementwise operations, computed for whole tensors -----------===//
#include "compiler/nn/eval/kernels.h"
#include <deque>

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

/// Of booleans and integers; these are unsigned in `f`.
template <typename F> LogicalResult bits(Operation *op, Operands in, Results out, F f) {
  return withElement(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    if constexpr (isFloat<T>)
      return op->emitOpError() << "is for integers";
    else
      return map2<T, T>(in, out, [&](T a, T b) { return T(wrapping(a, b, f)); });
  });
}

/// The larger (or smaller) operand, NaN if either is NaN.
template <typename Less> LogicalResult extreme(Operands in, Results out, Less less) {
  return withElement(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    return map2<T, T>(in, out, [&](T a, T b) { return less(a, b) || a != a ? a : b; });
  });
}

LogicalResult compare(Fn fn, Operands in, Results out) {
  return withElement(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    switch (fn) {
    case Fn::Eq:
      return map2<T, uint8_t>(in, out, std::equal_to<T>());
    case Fn::Ne:
      return map2<T, uint8_t>(in, out, std::not_equal_to<T>());
    case Fn::Lt:
      return map2<T, uint8_t>(in, out, std::less<T>());
    case Fn::Le:
      return map2<T, uint8_t>(in, out, std::less_equal<T>());
    case Fn::Gt:
      return map2<T, uint8_t>(in, out, std::greater<T>());
    default:
      return map2<T, uint8_t>(in, out, std::greater_equal<T>());
    }
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

LogicalResult function(Fn fn, Operation *op, Operands in, Results out) {
  switch (fn) {
  case Fn::Add:
    return arithmetic(op, in, out, std::plus<>());
  case Fn::Sub:
    return arithmetic(op, in, out, std::minus<>());
  case Fn::Mul:
    return arithmetic(op, in, out, std::multiplies<>());
  case Fn::Div:
    return divide(op, in, out);
  case Fn::Mod:
    return modulo(op, in, out);
  case Fn::Pow:
    return withFloat(in[0]->elementType(), [&](auto e) {
      using T = decltype(e);
      return map2<T, T>(in, out, [](T a, T b) { return std::pow(a, b); });
    });
  case Fn::Max:
    return extreme(in, out, std::greater<>());
  case Fn::Min:
    return extreme(in, out, std::less<>());
  case Fn::And:
    return bits(op, in, out, std::bit_and<>());
  case Fn::Or:
    return bits(op, in, out, std::bit_or<>());
  case Fn::Xor:
    return bits(op, in, out, std::bit_xor<>());
  case Fn::ShiftLeft:
    return bits(op, in, out, [](auto a, auto places) { return places < 8 * sizeof(a) ? a << places : 0; });
  case Fn::ShiftRight:
    return bits(op, in, out, [](auto a, auto places) { return places < 8 * sizeof(a) ? a >> places : 0; });
  case Fn::Not:
    return map<uint8_t, uint8_t>(in, out, [](uint8_t a) { return uint8_t(!a); });
  case Fn::Neg:
    return negate(op, in, out);
  case Fn::Abs:
    return absolute(in, out);
  case Fn::Exp:
    return mapFloat(in, out, [](auto x) { return std::exp(x); });
  case Fn::Log:
    return mapFloat(in, out, [](auto x) { return std::log(x); });
  case Fn::Sqrt:
    return mapFloat(in, out, [](auto x) { return std::sqrt(x); });
  case Fn::Rsqrt:
    return mapFloat(in, out, [](auto x) { return 1 / std::sqrt(double(x)); });
  case Fn::Tanh:
    return mapFloat(in, out, [](auto x) { return std::tanh(x); });
  case Fn::Erf:
    return mapFloat(in, out, [](auto x) { return std::erf(x); });
  case Fn::Sin:
    return mapFloat(in, out, [](auto x) { return std::sin(x); });
  case Fn::Cos:
    return mapFloat(in, out, [](auto x) { return std::cos(x); });
  case Fn::Floor:
    return mapFloat(in, out, [](auto x) { return std::floor(x); });
  case Fn::Sigmoid:
    return mapFloat(in, out, [](auto x) { return sigmoid(x); });
  case Fn::IsNan:
    return withFloat(in[0]->elementType(),
                     [&](auto e) { return map<decltype(e), uint8_t>(in, out, [](auto x) { return uint8_t(x != x); }); });
  case Fn::Eq:
  case Fn::Ne:
  case Fn::Lt:
  case Fn::Le:
  case Fn::Gt:
  case Fn::Ge:
    return compare(fn, in, out);
  case Fn::Select:
    return select(in, out);
  case Fn::Cast:
  case Fn::Random:
    break; // not applied by formulas
  }
  return op->emitOpError() << "has a formula the interpreter cannot compute";
}

/// A number of a formula is a tensor here: all elements at once.
class TensorMath : public ScalarBuilder {
public:
  TensorMath(Operation *op, Operands operands) : op(op), tensors(operands) {}

  Number apply(Fn fn, ArrayRef<Number> numbers) override {
    SmallVector<const Tensor *, 3> in;
    for (Number n : numbers) in.push_back(tensors[n.id]);
    RankedTensorType type = in[fn == Fn::Select ? 1 : 0]->type;
    if (isPredicate(fn)) type = type.clone(IntegerType::get(op->getContext(), 1));
    Tensor out(type);
    if (!broken) broken = failed(function(fn, op, in, out));
    return keep(std::move(out));
  }

  Number constant(Number like, double value) override {
    Tensor splat(tensors[like.id]->type);
    for (int64_t i = 0; i < splat.size(); ++i) splat.set(i, value);
    return keep(std::move(splat));
  }

  Number convert(Number x, Type element) override {
    Tensor converted = tensors[x.id]->cast(element);
    return keep(isNarrow(element) ? converted.cast(Float32Type::get(op->getContext())) : std::move(converted));
  }

  FailureOr<Tensor> take(Number result) {
    if (broken) return failure();
    if (size_t(result.id) < op->getNumOperands()) return *tensors[result.id];
    return std::move(made[result.id - op->getNumOperands()]);
  }

private:
  Number keep(Tensor tensor) {
    made.push_back(std::move(tensor));
    tensors.push_back(&made.back());
    return {int(tensors.size()) - 1};
  }

  Operation *op;
  SmallVector<const Tensor *> tensors;
  std::deque<Tensor> made;
  bool broken = false;
};

} // namespace

FailureOr<Tensor> pointwise(PointwiseOpInterface op, Operands in) {
  TensorMath math(op, in);
  SmallVector<Number, 3> numbers;
  for (size_t i = 0; i < in.size(); ++i) numbers.push_back({int(i)});
  return math.take(op.compute(math, numbers));
}

} // namespace zero::nn::eval

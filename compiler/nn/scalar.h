//===- scalar.h - what an operation does with the numbers at one index -----------------------------===//
// The meaning of an elementwise operation is written once, as a formula of a few functions. Whoever asks for it brings a builder: the
// interpreter's computes the numbers, that of codegen makes nodes of a kernel for every target, and that of `sizeOf` only counts.
#pragma once
#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace zero::nn {

/// What the interpreter computes and every target has code for. Everything else is a formula of these.
enum class Fn : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  Pow,
  Max,
  Min,
  And, // of booleans, or of the bits of integers; so are the next two
  Or,
  Xor,
  Not,
  Neg,
  Abs,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Tanh,
  Erf,
  Sin,
  Cos,
  Floor,
  Sigmoid,
  IsNan, // from here on booleans of numbers
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Select,
  Cast,
  Random,    // of (seed, counter), only in nn.random
  ShiftLeft, // of bits; zeros move in, and by all places or more both give 0
  ShiftRight
};

/// Of the functions that are polynomials (and random numbers, which cost as much): a chain of a dozen instructions and more.
bool isTranscendental(Fn fn);
/// In values: what a long function takes where another takes one.
inline constexpr unsigned kLongWork = 8;
/// Gives a boolean whatever its operands are.
inline bool isPredicate(Fn fn) { return fn >= Fn::IsNan && fn <= Fn::Ge; }

/// A number inside a formula; which one it is knows its builder.
struct Number {
  int id;
};

class ScalarBuilder {
public:
  virtual ~ScalarBuilder() = default;
  /// Operands have one type, which the result has too, with two exceptions: predicates give booleans, and the first operand of a
  /// selection is one.
  virtual Number apply(Fn fn, llvm::ArrayRef<Number> operands) = 0;
  /// `value` in the type of `like`.
  virtual Number constant(Number like, double value) = 0;
  /// By the rule of nn.cast. To f16 or bf16: rounded to it, and computed with in f32.
  virtual Number convert(Number x, mlir::Type element) = 0;

  Number add(Number x, Number y) { return apply(Fn::Add, {x, y}); }
  Number sub(Number x, Number y) { return apply(Fn::Sub, {x, y}); }
  Number mul(Number x, Number y) { return apply(Fn::Mul, {x, y}); }
  Number div(Number x, Number y) { return apply(Fn::Div, {x, y}); }
  Number abs(Number x) { return apply(Fn::Abs, {x}); }
  Number neg(Number x) { return apply(Fn::Neg, {x}); }
  Number exp(Number x) { return apply(Fn::Exp, {x}); }
  Number log(Number x) { return apply(Fn::Log, {x}); }
  Number sqrt(Number x) { return apply(Fn::Sqrt, {x}); }
  Number select(Number condition, Number x, Number y) { return apply(Fn::Select, {condition, x, y}); }
};

} // namespace zero::nn

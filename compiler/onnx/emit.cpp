//===- emit.cpp - building and evaluating nn operations ------------------------------------------===//
#include "compiler/onnx/emit.h"
#include "compiler/nn/build.h"
#include "mlir/IR/Verifier.h"
#include <numeric>

using namespace mlir;

namespace zero::onnx {

std::optional<Ints> broadcastShapes(Shape a, Shape b) {
  if (a.size() < b.size()) std::swap(a, b);
  Ints shape(a.begin(), a.end());
  size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t &d = shape[lead + i];
    if (d == 1)
      d = b[i];
    else if (b[i] != 1 && b[i] != d)
      return std::nullopt;
  }
  return shape;
}

std::optional<int64_t> elementsOf(Shape shape) {
  int64_t n = 1;
  for (int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(n, d, &n) || n > int64_t(1) << 62) return std::nullopt;
  return n;
}

Ints upTo(int64_t n) {
  Ints r(n);
  std::iota(r.begin(), r.end(), 0);
  return r;
}

Ints channelsLast(int64_t n) {
  Ints perm = upTo(n);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return perm;
}

std::string text(Shape shape) {
  std::string s;
  llvm::raw_string_ostream os(s);
  os << '[';
  llvm::interleaveComma(shape, os);
  os << ']';
  return s;
}

Emitter::Emitter(OpBuilder builder, uint64_t maxConstantBytes, uint64_t maxOperations)
    : builder(builder), location(builder.getUnknownLoc()), maxConstantBytes(maxConstantBytes), maxOperations(maxOperations),
      scratch(new Block) {}

Emitter::~Emitter() { delete scratch; }

Val Emitter::fail(const Twine &message) {
  if (!broken) emitError(location) << node << ": " << message.str();
  broken = true;
  return {};
}

void Emitter::warn(const Twine &message) { emitWarning(location) << node << ": " << message.str(); }

bool Emitter::fits(Shape shape) {
  auto n = elementsOf(shape);
  if (n && *n <= int64_t(1) << 48) return true;
  fail("a tensor of shape " + text(shape) + " is too large");
  return false;
}

bool Emitter::affords(Shape shape, mlir::Type element) {
  if (broken || !fits(shape)) return false;
  uint64_t bytes = nn::bytesOf(RankedTensorType::get(shape, element));
  if (bytes <= maxConstantBytes) return true;
  fail("folding it makes a constant of " + Twine(bytes) + " bytes, more than the " + Twine(maxConstantBytes) + " allowed");
  return false;
}

bool Emitter::isTaken(Operation *op) {
  {
    ScopedDiagnosticHandler quiet(context(), [](Diagnostic &) { return success(); }); // it speaks of the dialect's operation
    if (succeeded(verify(op, /*verifyRecursively=*/false))) return true;
  }
  std::string operands;
  llvm::raw_string_ostream os(operands);
  llvm::interleave(
      op->getOperandTypes(), os,
      [&](mlir::Type t) { os << text(cast<ShapedType>(t).getShape()) << " of " << cast<ShapedType>(t).getElementType(); }, " and ");
  fail("it is not supported for " + operands);
  return false;
}

Vals Emitter::emit(ArrayRef<Val> operands, Build build) {
  if (broken) return {};
  bool known = true;
  for (const Val &v : operands) {
    if (!v || v.sequence) {
      fail(v.sequence ? "a sequence stands where a tensor is needed" : "an operand is missing");
      return {};
    }
    known &= v.isConstant();
  }
  if (known)
    if (auto folded = fold(operands, build)) return *folded;
  SmallVector<Value> values;
  for (const Val &v : operands) values.push_back(materialise(v));
  if (++operations > maxOperations) {
    fail("by here the model has become more than the " + Twine(maxOperations) + " operations that its number of nodes allows");
    return {};
  }
  Operation *op = build(builder, values);
  if (!isTaken(op)) return {};
  for (mlir::Type t : op->getResultTypes())
    if (!fits(cast<ShapedType>(t).getShape())) return {};
  Vals results;
  for (Value v : op->getResults()) results.push_back(v);
  return results;
}

Value Emitter::materialise(const Val &v) {
  if (!v.isConstant()) return v.value;
  Value &known = materialised[v.constant.get()];
  if (!known) {
    known = constant(*v.constant);
    kept.push_back(v.constant);
  }
  return known;
}

/// Of a large tensor what repeats, as a mask does for every sample, is stored once.
Value Emitter::constant(const nn::Tensor &tensor) {
  constexpr int64_t kLarge = 1 << 16; // elements
  if (tensor.size() < kLarge) return builder.create<nn::ConstantOp>(location, tensor.toAttribute());
  nn::Tensor once = tensor;
  once.dropEqual();
  Value stored = builder.create<nn::ConstantOp>(location, once.toAttribute());
  if (once.type == tensor.type) return stored;
  return nn::Build{builder, location}.broadcast(stored, tensor.shape(), llvm::to_vector(llvm::seq<int64_t>(0, tensor.type.getRank())));
}

TypedAttr Emitter::number(double value, mlir::Type element) {
  if (isa<FloatType>(element)) return builder.getFloatAttr(element, value);
  return builder.getIntegerAttr(element, scalar(value, element).constant->integer(0)); // by the rule of nn.cast
}

Val Emitter::scalar(double value, mlir::Type element) { return nn::Tensor::fromValues(RankedTensorType::get({}, element), {value}); }

Val Emitter::ints(ArrayRef<int64_t> values) {
  nn::Tensor t(RankedTensorType::get({int64_t(values.size())}, i64()));
  llvm::copy(values, t.data<int64_t>().begin());
  return t;
}

Val Emitter::full(Shape shape, double value, mlir::Type element) {
  if (broken || !fits(shape)) return {};
  auto type = RankedTensorType::get(shape, element);
  return Value(builder.create<nn::ConstantOp>(location, DenseElementsAttr::get(type, number(value, element))));
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Whether all elements have the same bits.
static bool isSplat(const nn::Tensor &t) {
  size_t width = t.size() ? t.bytes.size() / t.size() : 0;
  return width && std::memcmp(t.bytes.data(), t.bytes.data() + width, t.bytes.size() - width) == 0;
}

bool Emitter::unify(Val &x, Val &y) {
  if (broken || !x || !y || x.sequence || y.sequence) {
    fail("an operand is missing");
    return false;
  }
  if (x.element() != y.element()) {
    std::string a, b;
    llvm::raw_string_ostream(a) << x.element();
    llvm::raw_string_ostream(b) << y.element();
    fail("operands have element types " + a + " and " + b);
    return false;
  }
  auto shape = broadcastShapes(x.shape(), y.shape());
  if (!shape) {
    fail("operands of shapes " + text(x.shape()) + " and " + text(y.shape()) + " do not broadcast");
    return false;
  }
  // A known splat beside a value of the function becomes a splat of the full shape; other operands are repeated.
  bool known = x.isConstant() && y.isConstant();
  for (Val *v : {&x, &y}) {
    if (v->shape() == Shape(*shape)) continue;
    if (!known && v->isConstant() && isSplat(*v->constant)) {
      auto type = RankedTensorType::get(*shape, v->element());
      nn::Tensor single(RankedTensorType::get({1}, v->element()));
      std::copy_n(v->constant->bytes.begin(), single.bytes.size(), single.bytes.begin());
      auto element = cast<DenseElementsAttr>(single.toAttribute());
      if (!fits(*shape)) return false;
      *v = Value(builder.create<nn::ConstantOp>(location, DenseElementsAttr::get(type, element.getSplatValue<Attribute>())));
    } else { // a constant beside a value of the function stays small: the repetition is an operation
      *v = broadcastTo(!known && v->isConstant() ? Val(materialise(*v)) : *v, *shape);
    }
  }
  return bool(x) && bool(y);
}

Val Emitter::compare(nn::Predicate predicate, Val x, Val y) {
  if (!unify(x, y)) return {};
  return one({x, y}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CompareOp>(location, cast<RankedTensorType>(v[0].getType()).clone(b.getI1Type()), predicate, v[0], v[1]);
  });
}

Val Emitter::select(Val condition, Val onTrue, Val onFalse) {
  if (!unify(onTrue, onFalse) || !condition) return {};
  if (!condition.isBool()) return fail("the condition is not boolean");
  auto shape = broadcastShapes(condition.shape(), onTrue.shape());
  if (!shape) return fail("the condition of shape " + text(condition.shape()) + " does not broadcast with " + text(onTrue.shape()));
  // The condition takes part in the common shape; a scalar of the values' type stands in for it.
  Val frame = Shape(*shape) == onTrue.shape() ? Val() : full(*shape, 0, onTrue.element());
  if (frame && condition.isConstant() && onTrue.isConstant() && onFalse.isConstant()) {
    onTrue = broadcastTo(onTrue, *shape);
    onFalse = broadcastTo(onFalse, *shape);
  } else if (frame) {
    Val f = frame;
    if (!unify(onTrue, f)) return {};
    f = frame;
    if (!unify(onFalse, f)) return {};
  }
  bool known = condition.isConstant() && onTrue.isConstant() && onFalse.isConstant();
  if (!known && condition.isConstant() && condition.shape() != Shape(*shape)) condition = materialise(condition);
  condition = broadcastTo(condition, *shape);
  return one({condition, onTrue, onFalse},
             [&](OpBuilder &b, ValueRange v) { return b.create<nn::SelectOp>(location, v[1].getType(), v[0], v[1], v[2]); });
}

Val Emitter::isNan(const Val &x) {
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::IsNanOp>(location, cast<RankedTensorType>(v[0].getType()).clone(b.getI1Type()), v[0]);
  });
}

Val Emitter::convert(const Val &x, mlir::Type element) {
  if (!x || x.sequence || x.element() == element) return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CastOp>(location, cast<RankedTensorType>(v[0].getType()).clone(element), v[0]);
  });
}

} // namespace zero::onnx

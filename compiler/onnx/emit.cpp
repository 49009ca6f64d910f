//===- emit.cpp - building and evaluating nn operations ------------------------------------------===//
#include "compiler/onnx/emit.h"
#include <numeric>

using namespace mlir;

namespace zero::onnx {

std::optional<Ints> broadcastShapes(Shape a, Shape b) {
  if (a.size() < b.size())
    std::swap(a, b);
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
    if (d < 0 || __builtin_mul_overflow(n, d, &n) || n > int64_t(1) << 62)
      return std::nullopt;
  return n;
}

Ints upTo(int64_t n) {
  Ints r(n);
  std::iota(r.begin(), r.end(), 0);
  return r;
}

static std::string text(Shape shape) {
  std::string s;
  llvm::raw_string_ostream os(s);
  os << '[';
  llvm::interleaveComma(shape, os);
  os << ']';
  return s;
}

Emitter::Emitter(OpBuilder builder, uint64_t maxConstantBytes)
    : builder(builder), location(builder.getUnknownLoc()), maxConstantBytes(maxConstantBytes), scratch(new Block) {}

Emitter::~Emitter() { delete scratch; }

Val Emitter::fail(const Twine &message) {
  if (!broken)
    emitError(location) << node << ": " << message.str();
  broken = true;
  return {};
}

void Emitter::warn(const Twine &message) { emitWarning(location) << node << ": " << message.str(); }

bool Emitter::fits(Shape shape) {
  auto n = elementsOf(shape);
  if (n && *n <= int64_t(1) << 48)
    return true;
  fail("a tensor of shape " + text(shape) + " is too large");
  return false;
}

Vals Emitter::emit(ArrayRef<Val> operands, Build build) {
  if (broken)
    return {};
  bool known = true;
  for (const Val &v : operands) {
    if (!v || v.sequence) {
      fail(v.sequence ? "a sequence stands where a tensor is needed" : "an operand is missing");
      return {};
    }
    known &= v.isConstant();
  }
  SmallVector<Value> values;
  if (!known) {
    for (const Val &v : operands)
      values.push_back(materialise(v));
    Operation *op = build(builder, values);
    for (Type t : op->getResultTypes())
      if (!fits(cast<ShapedType>(t).getShape()))
        return {};
    Vals results;
    for (Value v : op->getResults())
      results.push_back(v);
    return results;
  }
  SmallVector<const nn::Tensor *> tensors;
  for (const Val &v : operands) {
    values.push_back(scratch->addArgument(v.type(), location));
    tensors.push_back(v.constant.get());
  }
  OpBuilder inside(context());
  inside.setInsertionPointToEnd(scratch);
  Operation *op = build(inside, values);
  Vals results;
  bool small = true;
  for (Type t : op->getResultTypes()) {
    auto shaped = cast<ShapedType>(t);
    small = small && fits(shaped.getShape());
    if (small && nn::bytesOf(shaped) > maxConstantBytes) {
      fail("folding it makes a constant of " + Twine(nn::bytesOf(shaped)) + " bytes, more than the " + Twine(maxConstantBytes) + " allowed");
      small = false;
    }
  }
  if (small) {
    auto evaluated = nn::evaluate(op, tensors);
    if (mlir::failed(evaluated))
      fail("it cannot be computed at compile time");
    else
      for (nn::Tensor &t : *evaluated)
        results.push_back(std::move(t));
  }
  op->erase();
  scratch->eraseArguments([](BlockArgument) { return true; });
  return results;
}

Value Emitter::materialise(const Val &v) {
  if (!v.isConstant())
    return v.value;
  Value &known = materialised[v.constant.get()];
  if (!known) {
    known = builder.create<nn::ConstantOp>(location, v.constant->toAttribute());
    kept.push_back(v.constant);
  }
  return known;
}

Val Emitter::scalar(double value, Type element) {
  return nn::Tensor::fromValues(RankedTensorType::get({}, element), {value});
}

Val Emitter::ints(ArrayRef<int64_t> values) {
  nn::Tensor t(RankedTensorType::get({int64_t(values.size())}, i64()));
  llvm::copy(values, t.data<int64_t>().begin());
  return t;
}

Val Emitter::full(Shape shape, double value, Type element) {
  if (broken || !fits(shape))
    return {};
  auto type = RankedTensorType::get(shape, element);
  Attribute one = isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, value)) : builder.getIntegerAttr(element, int64_t(value));
  return Value(builder.create<nn::ConstantOp>(location, DenseElementsAttr::get(type, one)));
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
    if (v->shape() == Shape(*shape))
      continue;
    if (!known && v->isConstant() && isSplat(*v->constant)) {
      auto type = RankedTensorType::get(*shape, v->element());
      nn::Tensor single(RankedTensorType::get({1}, v->element()));
      std::copy_n(v->constant->bytes.begin(), single.bytes.size(), single.bytes.begin());
      auto element = cast<DenseElementsAttr>(single.toAttribute());
      if (!fits(*shape))
        return false;
      *v = Value(builder.create<nn::ConstantOp>(location, DenseElementsAttr::get(type, element.getSplatValue<Attribute>())));
    } else { // a constant beside a value of the function stays small: the repetition is an operation
      *v = broadcastTo(!known && v->isConstant() ? Val(materialise(*v)) : *v, *shape);
    }
  }
  return bool(x) && bool(y);
}

Val Emitter::compare(nn::Predicate predicate, Val x, Val y) {
  if (!unify(x, y))
    return {};
  return one({x, y}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CompareOp>(location, cast<RankedTensorType>(v[0].getType()).clone(b.getI1Type()), predicate, v[0], v[1]);
  });
}

Val Emitter::select(Val condition, Val onTrue, Val onFalse) {
  if (!unify(onTrue, onFalse) || !condition)
    return {};
  if (!condition.isBool())
    return fail("the condition is not boolean");
  auto shape = broadcastShapes(condition.shape(), onTrue.shape());
  if (!shape)
    return fail("the condition of shape " + text(condition.shape()) + " does not broadcast with " + text(onTrue.shape()));
  // The condition takes part in the common shape; a scalar of the values' type stands in for it.
  Val frame = Shape(*shape) == onTrue.shape() ? Val() : full(*shape, 0, onTrue.element());
  if (frame && condition.isConstant() && onTrue.isConstant() && onFalse.isConstant()) {
    onTrue = broadcastTo(onTrue, *shape);
    onFalse = broadcastTo(onFalse, *shape);
  } else if (frame) {
    Val f = frame;
    if (!unify(onTrue, f))
      return {};
    f = frame;
    if (!unify(onFalse, f))
      return {};
  }
  bool known = condition.isConstant() && onTrue.isConstant() && onFalse.isConstant();
  if (!known && condition.isConstant() && condition.shape() != Shape(*shape))
    condition = materialise(condition);
  condition = broadcastTo(condition, *shape);
  return one({condition, onTrue, onFalse},
             [&](OpBuilder &b, ValueRange v) { return b.create<nn::SelectOp>(location, v[1].getType(), v[0], v[1], v[2]); });
}

Val Emitter::isNan(const Val &x) {
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::IsNanOp>(location, cast<RankedTensorType>(v[0].getType()).clone(b.getI1Type()), v[0]);
  });
}

Val Emitter::convert(const Val &x, Type element) {
  if (!x || x.sequence || x.element() == element)
    return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CastOp>(location, cast<RankedTensorType>(v[0].getType()).clone(element), v[0]);
  });
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

Val Emitter::broadcast(const Val &x, Shape dims, Shape shape) {
  if (!x || broken || !fits(shape))
    return {};
  if (x.shape() == shape)
    return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::BroadcastOp>(location, RankedTensorType::get(shape, x.element()), v[0], b.getDenseI64ArrayAttr(dims));
  });
}

Val Emitter::broadcastTo(const Val &x, Shape shape) {
  if (!x || broken)
    return {};
  auto common = broadcastShapes(x.shape(), shape);
  if (!common || Shape(*common) != shape)
    return fail("a tensor of shape " + text(x.shape()) + " cannot be repeated to " + text(shape));
  Ints dims;
  for (int64_t i = 0; i < x.rank(); ++i)
    dims.push_back(int64_t(shape.size()) - x.rank() + i);
  return broadcast(x, dims, shape);
}

Val Emitter::reshape(const Val &x, Shape shape) {
  if (!x || broken)
    return {};
  if (x.shape() == shape)
    return x;
  if (elementsOf(shape) != x.type().getNumElements())
    return fail("a tensor of shape " + text(x.shape()) + " cannot become " + text(shape));
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::ReshapeOp>(location, RankedTensorType::get(shape, x.element()), v[0]);
  });
}

Val Emitter::transpose(const Val &x, Shape perm) {
  if (!x || broken)
    return {};
  llvm::SmallBitVector seen(x.rank());
  for (int64_t p : perm) {
    if (p < 0 || p >= x.rank() || seen[p])
      return fail(text(perm) + " is no permutation of the dimensions of " + text(x.shape()));
    seen.set(p);
  }
  if (int64_t(perm.size()) != x.rank())
    return fail(text(perm) + " is no permutation of the dimensions of " + text(x.shape()));
  if (perm == Shape(upTo(x.rank())))
    return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::TransposeOp>(location, v[0], b.getDenseI64ArrayAttr(perm)); });
}

Val Emitter::slice(const Val &x, Shape starts, Shape sizes, Shape steps) {
  if (!x || broken)
    return {};
  bool whole = true;
  for (int64_t i = 0; i < x.rank(); ++i) {
    whole &= sizes[i] == x.dim(i) && steps[i] == 1;
    __int128 first = starts[i], last = first + (__int128(sizes[i]) - 1) * steps[i];
    if (sizes[i] < 0 || (sizes[i] > 0 && (std::min(first, last) < 0 || std::max(first, last) >= x.dim(i))))
      return fail("dimension " + Twine(i) + " of " + text(x.shape()) + " has no such slice");
  }
  if (whole)
    return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::SliceOp>(location, v[0], b.getDenseI64ArrayAttr(starts), b.getDenseI64ArrayAttr(sizes), b.getDenseI64ArrayAttr(steps));
  });
}

Val Emitter::sliceDim(const Val &x, int64_t dim, int64_t from, int64_t to) {
  if (!x || broken)
    return {};
  Ints starts(x.rank(), 0), sizes(x.shape().begin(), x.shape().end()), steps(x.rank(), 1);
  starts[dim] = from;
  sizes[dim] = to - from;
  return slice(x, starts, sizes, steps);
}

Val Emitter::pad(const Val &x, double value, Shape low, Shape high) {
  if (!x || broken)
    return {};
  Ints shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t d;
    if (low[i] < 0 || high[i] < 0 || __builtin_add_overflow(low[i], high[i], &d) || __builtin_add_overflow(d, x.dim(i), &d))
      return fail("pad amounts are out of range");
    shape.push_back(d);
  }
  if (x.shape() == Shape(shape))
    return x;
  if (!fits(shape))
    return {};
  Ints none(x.rank(), 0);
  TypedAttr with = isa<FloatType>(x.element()) ? TypedAttr(builder.getFloatAttr(x.element(), value))
                                                : TypedAttr(builder.getIntegerAttr(x.element(), int64_t(value)));
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::PadOp>(location, v[0], with, b.getDenseI64ArrayAttr(low), b.getDenseI64ArrayAttr(high), b.getDenseI64ArrayAttr(none));
  });
}

Val Emitter::concat(ArrayRef<Val> parts, int64_t dim) {
  if (broken)
    return {};
  Vals real;
  int64_t total = 0;
  for (const Val &v : parts) {
    if (!v || v.sequence)
      return fail("an operand is missing");
    bool fit = v.rank() == parts[0].rank() && v.element() == parts[0].element() && dim < v.rank();
    for (int64_t i = 0; fit && i < v.rank(); ++i)
      fit = i == dim || v.dim(i) == parts[0].dim(i);
    if (!fit)
      return fail("a tensor of shape " + text(v.shape()) + " does not fit beside " + text(parts[0].shape()) + " along dimension " + Twine(dim));
    total += v.dim(dim);
    if (v.dim(dim))
      real.push_back(v);
  }
  if (real.empty())
    return parts.empty() ? fail("there is nothing to join") : parts[0];
  if (real.size() == 1)
    return real[0];
  return one(real, [&](OpBuilder &b, ValueRange v) { return b.create<nn::ConcatOp>(location, v, b.getI64IntegerAttr(dim)); });
}

Val Emitter::gather(const Val &table, const Val &indices) {
  if (!table || !indices || broken)
    return {};
  if (table.rank() == 0 || !indices.element().isIntOrIndex() || indices.isBool())
    return fail("a lookup needs a table of at least one dimension and integer indices");
  return one({table, indices}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::GatherOp>(location, v[0], v[1]); });
}

Val Emitter::takeAlong(const Val &x, const Val &indices) {
  if (!x || !indices || broken)
    return {};
  if (x.rank() == 0 || indices.shape() != x.shape().drop_back())
    return fail("one index per row is needed");
  return one({x, indices}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::TakeAlongOp>(location, RankedTensorType::get(indices.shape(), x.element()), v[0], v[1]);
  });
}

Val Emitter::iota(Shape shape, int64_t dim, Type element) {
  if (broken || !fits(shape))
    return {};
  return one({}, [&](OpBuilder &b, ValueRange) {
    return b.create<nn::IotaOp>(location, RankedTensorType::get(shape, element), b.getI64IntegerAttr(dim));
  });
}

//===----------------------------------------------------------------------===//
// Reductions, composites, products
//===----------------------------------------------------------------------===//

Val Emitter::reduce(nn::ReductionKind kind, const Val &x, Shape dims) {
  if (!x || broken)
    return {};
  Ints sorted(dims.begin(), dims.end());
  llvm::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] < 0 || sorted[i] >= x.rank() || (i && sorted[i] == sorted[i - 1]))
      return fail("axes " + text(dims) + " do not fit a tensor of shape " + text(x.shape()));
  if (sorted.empty())
    return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::ReduceOp>(location, kind, v[0], b.getDenseI64ArrayAttr(sorted)); });
}

Val Emitter::cumsum(const Val &x, bool exclusive, bool reverse) {
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CumSumOp>(location, v[0], b.getBoolAttr(exclusive), b.getBoolAttr(reverse));
  });
}

Val Emitter::softmax(const Val &x) {
  if (x && (x.rank() == 0 || !x.isFloat()))
    return fail("softmax needs floats with at least one dimension");
  return unary<nn::SoftmaxOp>(x);
}

Val Emitter::gelu(nn::GeluKind kind, const Val &x) {
  return one({x}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::GeluOp>(location, v[0].getType(), kind, v[0]); });
}

Val Emitter::layerNorm(const Val &x, const Val &scale, const Val &bias, double eps, Val *mean, Val *rstd) {
  if (!x || !scale || broken)
    return {};
  for (const Val *v : {&scale, &bias})
    if (*v && (x.rank() == 0 || v->shape() != x.shape().take_back()))
      return fail("scale and bias have shape " + text(v->shape()) + " for an input of shape " + text(x.shape()));
  Vals operands{x, scale};
  if (bias)
    operands.push_back(bias);
  Vals r = emit(operands, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::LayerNormOp>(location, v[0], v[1], v.size() > 2 ? v[2] : Value(), b.getF32FloatAttr(float(eps)));
  });
  if (r.empty())
    return {};
  if (mean)
    *mean = r[1];
  if (rstd)
    *rstd = r[2];
  return r[0];
}

Val Emitter::rmsNorm(const Val &x, const Val &scale, double eps) {
  if (!x || !scale || broken)
    return {};
  if (x.rank() == 0 || scale.shape() != x.shape().take_back())
    return fail("scale has shape " + text(scale.shape()) + " for an input of shape " + text(x.shape()));
  return one({x, scale}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::RmsNormOp>(location, v[0], v[1], b.getF32FloatAttr(float(eps))); });
}

Val Emitter::crossEntropy(const Val &logits, const Val &labels, const Val &scale, int64_t ignore) {
  return one({logits, labels, scale}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CrossEntropyOp>(location, v[0], v[1], v[2], b.getI64IntegerAttr(ignore));
  });
}

Val Emitter::matmul(const Val &x, const Val &y, bool transposeX, bool transposeY) {
  if (!x || !y || broken)
    return {};
  int64_t r = x.rank();
  bool fit = x.isFloat() && y.isFloat() && r == y.rank() && (r == 2 || r == 3) && (r == 2 || x.dim(0) == y.dim(0)) &&
             x.dim(r - (transposeX ? 2 : 1)) == y.dim(r - (transposeY ? 1 : 2));
  if (!fit)
    return fail("there is no product of shapes " + text(x.shape()) + " and " + text(y.shape()));
  return one({x, y}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::MatMulOp>(location, v[0], v[1], b.getBoolAttr(transposeX), b.getBoolAttr(transposeY));
  });
}

Val Emitter::attention(const Val &q, const Val &k, const Val &v, const Val &mask, double scale, bool causal) {
  Vals operands{q, k, v};
  if (mask)
    operands.push_back(mask);
  return one(operands, [&](OpBuilder &b, ValueRange o) {
    return b.create<nn::AttentionOp>(location, o[0], o[1], o[2], o.size() > 3 ? o[3] : Value(), b.getF32FloatAttr(float(scale)), b.getBoolAttr(causal));
  });
}

Val Emitter::dropout(const Val &x, Value seed, double rate, int64_t id, int64_t samples) {
  if (!x || broken)
    return {};
  return Value(builder.create<nn::DropoutOp>(location, x.type(), materialise(x), seed, builder.getF32FloatAttr(float(rate)),
                                             builder.getI64IntegerAttr(id), builder.getI64IntegerAttr(samples)));
}

} // namespace zero::onnx

//===- emit_ops.cpp - movement, reductions, composites and products ------------------------------===//
// Each checks what the dialect's type inference would refuse, so that a wrong model ends in a sentence.
#include "compiler/onnx/emit.h"

using namespace mlir;

namespace zero::onnx {

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

Val Emitter::broadcast(const Val &x, Shape dims, Shape shape) {
  if (!x || broken || !fits(shape)) return {};
  if (x.shape() == shape) return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::BroadcastOp>(location, RankedTensorType::get(shape, x.element()), v[0], b.getDenseI64ArrayAttr(dims));
  });
}

Val Emitter::broadcastTo(const Val &x, Shape shape) {
  if (!x || broken) return {};
  auto common = broadcastShapes(x.shape(), shape);
  if (!common || Shape(*common) != shape) return fail("a tensor of shape " + text(x.shape()) + " cannot be repeated to " + text(shape));
  Ints dims;
  for (int64_t i = 0; i < x.rank(); ++i) dims.push_back(int64_t(shape.size()) - x.rank() + i);
  return broadcast(x, dims, shape);
}

Val Emitter::reshape(const Val &x, Shape shape) {
  if (!x || broken) return {};
  if (x.shape() == shape) return x;
  if (elementsOf(shape) != x.type().getNumElements()) return fail("a tensor of shape " + text(x.shape()) + " cannot become " + text(shape));
  return one(
      {x}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::ReshapeOp>(location, RankedTensorType::get(shape, x.element()), v[0]); });
}

Val Emitter::transpose(const Val &x, Shape perm) {
  if (!x || broken) return {};
  llvm::SmallBitVector seen(x.rank());
  for (int64_t p : perm) {
    if (p < 0 || p >= x.rank() || seen[p]) return fail(text(perm) + " is no permutation of the dimensions of " + text(x.shape()));
    seen.set(p);
  }
  if (int64_t(perm.size()) != x.rank()) return fail(text(perm) + " is no permutation of the dimensions of " + text(x.shape()));
  if (perm == Shape(upTo(x.rank()))) return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::TransposeOp>(location, v[0], b.getDenseI64ArrayAttr(perm)); });
}

Val Emitter::slice(const Val &x, Shape starts, Shape sizes, Shape steps) {
  if (!x || broken) return {};
  bool whole = true;
  for (int64_t i = 0; i < x.rank(); ++i) {
    whole &= sizes[i] == x.dim(i) && steps[i] == 1;
    __int128 first = starts[i], last = first + (__int128(sizes[i]) - 1) * steps[i];
    if (sizes[i] < 0 || (sizes[i] > 0 && (std::min(first, last) < 0 || std::max(first, last) >= x.dim(i))))
      return fail("dimension " + Twine(i) + " of " + text(x.shape()) + " has no such slice");
  }
  if (whole) return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::SliceOp>(location, v[0], b.getDenseI64ArrayAttr(starts), b.getDenseI64ArrayAttr(sizes),
                                 b.getDenseI64ArrayAttr(steps));
  });
}

Val Emitter::sliceDim(const Val &x, int64_t dim, int64_t from, int64_t to) {
  if (!x || broken) return {};
  Ints starts(x.rank(), 0), sizes(x.shape().begin(), x.shape().end()), steps(x.rank(), 1);
  starts[dim] = from;
  sizes[dim] = to - from;
  return slice(x, starts, sizes, steps);
}

Val Emitter::pad(const Val &x, double value, Shape low, Shape high) {
  if (!x || broken) return {};
  Ints shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t d;
    if (low[i] < 0 || high[i] < 0 || __builtin_add_overflow(low[i], high[i], &d) || __builtin_add_overflow(d, x.dim(i), &d))
      return fail("pad amounts are out of range");
    shape.push_back(d);
  }
  if (x.shape() == Shape(shape)) return x;
  if (!fits(shape)) return {};
  Ints none(x.rank(), 0);
  TypedAttr with = number(value, x.element());
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::PadOp>(location, v[0], with, b.getDenseI64ArrayAttr(low), b.getDenseI64ArrayAttr(high),
                               b.getDenseI64ArrayAttr(none));
  });
}

/// A concatenation of more tensors than the first number is built of parts, since a kernel chooses among few; more than the second
/// are refused.
constexpr size_t kPiecesAtOnce = 64, kMostPieces = 4096;

Val Emitter::concat(ArrayRef<Val> parts, int64_t dim) {
  if (broken) return {};
  Vals real;
  int64_t total = 0;
  for (const Val &v : parts) {
    if (!v || v.sequence) return fail("an operand is missing");
    bool fit = v.rank() == parts[0].rank() && v.element() == parts[0].element() && dim < v.rank();
    for (int64_t i = 0; fit && i < v.rank(); ++i) fit = i == dim || v.dim(i) == parts[0].dim(i);
    if (!fit)
      return fail("a tensor of shape " + text(v.shape()) + " does not fit beside " + text(parts[0].shape()) + " along dimension " +
                  Twine(dim));
    total += v.dim(dim);
    if (v.dim(dim)) real.push_back(v);
  }
  if (real.empty()) return parts.empty() ? fail("there is nothing to join") : parts[0];
  if (real.size() == 1) return real[0];
  bool known = llvm::all_of(real, [](const Val &v) { return v.isConstant(); });
  if (!known && real.size() > kMostPieces)
    return fail("joining " + Twine(real.size()) + " tensors is not supported (at most " + Twine(kMostPieces) + ")");
  while (!known && real.size() > kPiecesAtOnce) {
    Vals joined;
    for (ArrayRef<Val> rest = real; !rest.empty() && !broken; rest = rest.drop_front(std::min(kPiecesAtOnce, rest.size())))
      joined.push_back(concat(rest.take_front(kPiecesAtOnce), dim));
    if (broken) return {};
    real = std::move(joined);
  }
  return one(real, [&](OpBuilder &b, ValueRange v) { return b.create<nn::ConcatOp>(location, v, b.getI64IntegerAttr(dim)); });
}

Val Emitter::gather(const Val &table, const Val &indices) {
  if (!table || !indices || broken) return {};
  if (table.rank() == 0 || !indices.element().isIntOrIndex() || indices.isBool())
    return fail("a lookup needs a table of at least one dimension and integer indices");
  return one({table, indices}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::GatherOp>(location, v[0], v[1]); });
}

Val Emitter::takeAlong(const Val &x, const Val &indices) {
  if (!x || !indices || broken) return {};
  if (x.rank() == 0 || indices.rank() > x.rank() || indices.shape().take_front(x.rank() - 1) != x.shape().drop_back())
    return fail("an index of each row is needed, or several");
  return one({x, indices}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::TakeAlongOp>(location, RankedTensorType::get(indices.shape(), x.element()), v[0], v[1]);
  });
}

Val Emitter::scatterAdd(const Val &indices, const Val &updates, int64_t rows) {
  if (!indices || !updates || broken) return {};
  Ints shape(updates.shape().begin(), updates.shape().end());
  if (indices.rank() != 1 || shape.empty() || shape[0] != indices.dim(0)) return fail("one index per row is needed");
  shape[0] = rows;
  return one({indices, updates}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::ScatterAddOp>(location, RankedTensorType::get(shape, updates.element()), v[0], v[1]);
  });
}

Val Emitter::iota(Shape shape, int64_t dim, mlir::Type element) {
  if (broken || !fits(shape)) return {};
  return one({}, [&](OpBuilder &b, ValueRange) {
    return b.create<nn::IotaOp>(location, RankedTensorType::get(shape, element), b.getI64IntegerAttr(dim));
  });
}

//===----------------------------------------------------------------------===//
// Reductions, composites, products
//===----------------------------------------------------------------------===//

Val Emitter::reduce(nn::ReductionKind kind, const Val &x, Shape dims) {
  if (!x || broken) return {};
  Ints sorted(dims.begin(), dims.end());
  llvm::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] < 0 || sorted[i] >= x.rank() || (i && sorted[i] == sorted[i - 1]))
      return fail("axes " + text(dims) + " do not fit a tensor of shape " + text(x.shape()));
  if (sorted.empty()) return x;
  return one({x}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::ReduceOp>(location, kind, v[0], b.getDenseI64ArrayAttr(sorted)); });
}

Val Emitter::cumsum(const Val &x, bool exclusive, bool reverse) {
  return one({x}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CumSumOp>(location, v[0], b.getBoolAttr(exclusive), b.getBoolAttr(reverse));
  });
}

Val Emitter::softmax(const Val &x) {
  if (x && (x.rank() == 0 || !x.isFloat())) return fail("softmax needs floats with at least one dimension");
  return unary<nn::SoftmaxOp>(x);
}

Val Emitter::logSoftmax(const Val &x) {
  if (!x || broken) return {};
  if (x.rank() == 0 || !x.isFloat()) return fail("log-softmax needs floats with at least one dimension");
  Ints column(x.shape().begin(), x.shape().end()), last{x.rank() - 1};
  column.back() = 1;
  Val shifted = sub(x, reshape(reduce(nn::ReductionKind::max, x, last), column));
  Val sum = reduce(nn::ReductionKind::sum, unary<nn::ExpOp>(shifted), last);
  return sub(shifted, reshape(unary<nn::LogOp>(sum), column));
}

Val Emitter::gelu(nn::GeluKind kind, const Val &x) {
  return one({x}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::GeluOp>(location, v[0].getType(), kind, v[0]); });
}

Val Emitter::layerNorm(const Val &x, const Val &scale, const Val &bias, double eps, Val *mean, Val *rstd) {
  if (!x || !scale || broken) return {};
  for (const Val *v : {&scale, &bias})
    if (*v && (x.rank() == 0 || v->shape() != x.shape().take_back()))
      return fail("scale and bias have shape " + text(v->shape()) + " for an input of shape " + text(x.shape()));
  Vals operands{x, scale};
  if (bias) operands.push_back(bias);
  Vals r = emit(operands, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::LayerNormOp>(location, v[0], v[1], v.size() > 2 ? v[2] : Value(), b.getF32FloatAttr(float(eps)));
  });
  if (r.empty()) return {};
  if (mean) *mean = r[1];
  if (rstd) *rstd = r[2];
  return r[0];
}

Val Emitter::rmsNorm(const Val &x, const Val &scale, double eps) {
  if (!x || !scale || broken) return {};
  if (x.rank() == 0 || scale.shape() != x.shape().take_back())
    return fail("scale has shape " + text(scale.shape()) + " for an input of shape " + text(x.shape()));
  return one({x, scale},
             [&](OpBuilder &b, ValueRange v) { return b.create<nn::RmsNormOp>(location, v[0], v[1], b.getF32FloatAttr(float(eps))); });
}

Val Emitter::crossEntropy(const Val &logits, const Val &labels, const Val &scale, int64_t ignore) {
  return one({logits, labels, scale}, [&](OpBuilder &b, ValueRange v) {
    return b.create<nn::CrossEntropyOp>(location, v[0], v[1], v[2], b.getI64IntegerAttr(ignore), b.getF32FloatAttr(0));
  });
}

Val Emitter::matmul(const Val &x, const Val &y, bool transposeX, bool transposeY) {
  if (!x || !y || broken) return {};
  int64_t r = x.rank();
  bool fit = x.isFloat() && y.isFloat() && r == y.rank() && (r == 2 || r == 3) && (r == 2 || x.dim(0) == y.dim(0)) &&
             x.dim(r - (transposeX ? 2 : 1)) == y.dim(r - (transposeY ? 1 : 2));
  if (!fit) return fail("there is no product of shapes " + text(x.shape()) + " and " + text(y.shape()));
  return one({x, y}, [&](OpBuilder &b, ValueRange v) { return b.create<nn::MatMulOp>(location, v[0], v[1], transposeX, transposeY); });
}

Val Emitter::depthwise(const Val &x, const Val &kernel, Shape low, Shape high, Shape strides, Shape dilations) {
  return one({x, kernel},
             [&](OpBuilder &b, ValueRange v) { return b.create<nn::DepthwiseOp>(location, v[0], v[1], low, high, strides, dilations); });
}

Val Emitter::attention(const Val &q, const Val &k, const Val &v, const Val &mask, double scale, bool causal) {
  Vals operands{q, k, v};
  if (mask) operands.push_back(mask);
  return one(operands, [&](OpBuilder &b, ValueRange o) {
    return b.create<nn::AttentionOp>(location, o[0], o[1], o[2], o.size() > 3 ? o[3] : Value(), /*bias=*/Value(), /*sink=*/Value(),
                                     b.getF32FloatAttr(float(scale)), b.getBoolAttr(causal), b.getBoolAttr(false), IntegerAttr(),
                                     DenseI64ArrayAttr(), /*softcap=*/FloatAttr(), /*beyond=*/FloatAttr());
  });
}

Val Emitter::dropout(const Val &x, Value seed, double rate, int64_t id) {
  if (!x || broken) return {};
  if (!x.isFloat()) return fail("dropout needs floats");
  IntegerAttr samples = builder.getI64IntegerAttr(1); // until nn-add-loss says
  return Value(builder.create<nn::DropoutOp>(location, x.type(), materialise(x), seed, builder.getF32FloatAttr(float(rate)),
                                             builder.getI64IntegerAttr(id), samples));
}

Val Emitter::noise(const Val &x, Value seed, bool normal, int64_t id) {
  if (!x || broken) return {};
  IntegerAttr samples = builder.getI64IntegerAttr(1); // until nn-add-loss says
  return Value(builder.create<nn::NoiseOp>(location, x.type(), materialise(x), seed, builder.getBoolAttr(normal),
                                           builder.getI64IntegerAttr(id), samples));
}

} // namespace zero::onnx

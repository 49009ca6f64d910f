//===- NnShapes.cpp - result types of the nn dialect, inferred from operands and attributes -----------===//
#include "compiler/nn/Nn.h"

using namespace mlir;

namespace zero::nn {
namespace {

using Types = SmallVectorImpl<Type>;

/// Report on the location where one is known (types are also inferred while building, without an op).
template <typename... Parts> LogicalResult reject(std::optional<Location> loc, Parts &&...parts) {
  if (!loc) return failure();
  auto diagnostic = emitError(*loc);
  (diagnostic << ... << parts);
  return diagnostic;
}

RankedTensorType ranked(Value v) { return cast<RankedTensorType>(v.getType()); }
RankedTensorType with(RankedTensorType like, ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, like.getElementType()); }
SmallVector<int64_t> withoutLast(RankedTensorType t) { return SmallVector<int64_t>(t.getShape().drop_back()); }
std::string text(ArrayRef<int64_t> shape) {
  std::string s = "[";
  llvm::raw_string_ostream os(s);
  llvm::interleaveComma(shape, os);
  return s + "]";
}


/// What products and attention read besides f32; their sums, and results that are sums, stay f32.
bool isNarrow(Type element) { return element.isBF16() || element.isF16(); }

} // namespace

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput());
  SmallVector<int64_t> shape;
  llvm::SmallBitVector seen(in.getRank());
  for (int64_t p : a.getPerm()) {
    if (p < 0 || p >= in.getRank() || seen[p])
      return reject(loc, "nn.transpose: ", text(a.getPerm()), " is no permutation of ", in.getRank(), " dimensions");
    seen.set(p);
    shape.push_back(in.getDimSize(p));
  }
  if (int64_t(shape.size()) != in.getRank())
    return reject(loc, "nn.transpose: ", text(a.getPerm()), " is no permutation of ", in.getRank(), " dimensions");
  out.push_back(with(in, shape));
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput());
  size_t rank = in.getRank();
  if (a.getStarts().size() != rank || a.getSizes().size() != rank || a.getSteps().size() != rank)
    return reject(loc, "nn.slice: starts, sizes and steps need one entry per dimension of ", in);
  for (size_t i = 0; i < rank; ++i) {
    int64_t first = a.getStarts()[i], last = first + (a.getSizes()[i] - 1) * a.getSteps()[i];
    if (a.getSizes()[i] < 0 || (a.getSizes()[i] > 0 && (std::min(first, last) < 0 || std::max(first, last) >= in.getDimSize(i))))
      return reject(loc, "nn.slice: dimension ", i, " of ", in, " has no elements ", first, " to ", last);
  }
  out.push_back(with(in, a.getSizes()));
  return success();
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput());
  size_t rank = in.getRank();
  if (a.getLow().size() != rank || a.getHigh().size() != rank || a.getInterior().size() != rank)
    return reject(loc, "nn.pad: low, high and interior need one entry per dimension of ", in);
  SmallVector<int64_t> shape;
  for (size_t i = 0; i < rank; ++i) {
    if (a.getLow()[i] < 0 || a.getHigh()[i] < 0 || a.getInterior()[i] < 0)
      return reject(loc, "nn.pad: amounts must not be negative (slice instead)");
    shape.push_back(a.getLow()[i] + a.getHigh()[i] + in.getDimSize(i) + std::max<int64_t>(0, in.getDimSize(i) - 1) * a.getInterior()[i]);
  }
  out.push_back(with(in, shape));
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  if (a.getInputs().empty()) return reject(loc, "nn.concat: nothing to join");
  auto first = ranked(a.getInputs()[0]);
  int64_t dim = a.getDim();
  if (dim < 0 || dim >= first.getRank()) return reject(loc, "nn.concat: dimension ", dim, " of ", first);
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = 0;
  for (Value v : a.getInputs()) {
    auto t = ranked(v);
    bool fits = t.getRank() == first.getRank() && t.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < t.getRank(); ++i) fits = i == dim || t.getDimSize(i) == first.getDimSize(i);
    if (!fits) return reject(loc, "nn.concat: ", t, " does not fit beside ", first, " along dimension ", dim);
    shape[dim] += t.getDimSize(dim);
  }
  out.push_back(with(first, shape));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput()), indices = ranked(a.getIndices());
  if (in.getRank() == 0) return reject(loc, "nn.gather: a scalar has no rows");
  SmallVector<int64_t> shape(indices.getShape());
  llvm::append_range(shape, in.getShape().drop_front());
  out.push_back(with(in, shape));
  return success();
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput());
  SmallVector<int64_t> shape;
  int64_t before = -1;
  for (int64_t d : a.getDims()) {
    if (d <= before || d >= in.getRank())
      return reject(loc, "nn.reduce: dims ", text(a.getDims()), " must rise and lie below the rank of ", in);
    before = d;
  }
  if (a.getKind() == ReductionKind::sum && in.getElementType().isInteger(1)) return reject(loc, "nn.reduce: booleans have no sum");
  for (int64_t i = 0; i < in.getRank(); ++i)
    if (!llvm::is_contained(a.getDims(), i)) shape.push_back(in.getDimSize(i));
  out.push_back(with(in, shape));
  return success();
}

LogicalResult CumSumOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput());
  if (in.getRank() == 0) return reject(loc, "nn.cumsum: a scalar has no last dimension");
  if (in.getElementType().isInteger(1)) return reject(loc, "nn.cumsum: booleans have no sum");
  out.push_back(in);
  return success();
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput());
  for (Value v : {a.getScale(), a.getBias()})
    if (v && (in.getRank() == 0 || ranked(v).getShape() != in.getShape().take_back()))
      return reject(loc, "nn.layer_norm: scale and bias of ", in, " have one entry per column, not ", v.getType());
  auto row = with(in, withoutLast(in));
  out.append({in, row, row});
  return success();
}

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = ranked(a.getInput());
  if (in.getRank() == 0 || ranked(a.getScale()).getShape() != in.getShape().take_back())
    return reject(loc, "nn.rms_norm: scale of ", in, " has one entry per column, not ", a.getScale().getType());
  out.append({in, with(in, withoutLast(in))});
  return success();
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto logits = ranked(a.getLogits()), labels = ranked(a.getLabels());
  if (logits.getRank() != 2 || labels.getShape() != logits.getShape().drop_back())
    return reject(loc, "nn.cross_entropy: logits are [rows, classes] and labels [rows], not ", logits, " and ", labels);
  if (ranked(a.getScale()).getNumElements() != 1) return reject(loc, "nn.cross_entropy: scale is one number, not ", a.getScale().getType());
  out.append({with(logits, {}), with(logits, logits.getShape().take_front())});
  return success();
}

LogicalResult MatMulOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto l = ranked(a.getLhs()), r = ranked(a.getRhs());
  int64_t rank = l.getRank();
  if (rank != r.getRank() || (rank != 2 && rank != 3) || (rank == 3 && l.getDimSize(0) != r.getDimSize(0)))
    return reject(loc, "nn.matmul: operands are both of rank 2, or of rank 3 with equal first dimension, not ", l, " and ", r);
  int64_t m = l.getDimSize(rank - 2), k = l.getDimSize(rank - 1), k2 = r.getDimSize(rank - 2), n = r.getDimSize(rank - 1);
  if (a.getTransposeLhs()) std::swap(m, k);
  if (a.getTransposeRhs()) std::swap(k2, n);
  if (l.getElementType() != r.getElementType()) return reject(loc, "nn.matmul: element types differ (", l, " and ", r, ")");
  if (k != k2) return reject(loc, "nn.matmul: inner dimensions ", k, " and ", k2, " differ (", l, " and ", r, ")");
  SmallVector<int64_t> shape(l.getShape().drop_back(2));
  shape.append({m, n});
  out.push_back(with(l, shape));
  return success();
}

bool MatMulOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange given) {
  if (inferred == given) return true;
  auto from = dyn_cast<RankedTensorType>(inferred[0]), to = dyn_cast<RankedTensorType>(given[0]);
  return from && to && isNarrow(from.getElementType()) && from.clone(Float32Type::get(from.getContext())) == to;
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto q = ranked(a.getQ()), k = ranked(a.getK()), v = ranked(a.getV());
  if (q.getRank() != 4 || k.getRank() != 4 || k != v || q.getElementType() != k.getElementType() || q.getDimSize(0) != k.getDimSize(0) ||
      q.getDimSize(3) != k.getDimSize(3) || k.getDimSize(1) == 0 || q.getDimSize(1) % k.getDimSize(1))
    return reject(loc, "nn.attention: q ", q, ", k ", k, ", v ", v, " do not fit together");
  if (a.getMask()) {
    auto mask = ranked(a.getMask());
    int64_t scores[4] = {q.getDimSize(0), q.getDimSize(1), q.getDimSize(2), k.getDimSize(2)};
    if (mask.getRank() != 4) return reject(loc, "nn.attention: mask ", mask, " is not of rank 4");
    for (int i = 0; i < 4; ++i)
      if (mask.getDimSize(i) != 1 && mask.getDimSize(i) != scores[i])
        return reject(loc, "nn.attention: mask ", mask, " does not fit scores ", text(scores));
  }
  auto lse = with(q, q.getShape().drop_back());
  out.append({q, isNarrow(q.getElementType()) ? lse.clone(Float32Type::get(lse.getContext())) : lse});
  return success();
}

} // namespace zero::nn

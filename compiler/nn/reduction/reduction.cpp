//===- reduction.cpp - sums, extremes, running sums, and sums by index -------------------------===//
#include "compiler/nn/implement.h"
#include <limits>

using namespace mlir;

namespace zero::nn {

/// Floats are added in double, integers in 64 bits (unsigned, where wrapping is defined).
template <typename T> using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T> static T reduceRow(ReductionKind kind, const T *row, int64_t n) {
  if (kind == ReductionKind::sum) {
    Accumulator<T> sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += Accumulator<T>(row[i]);
    return T(sum);
  }
  using Limits = std::numeric_limits<T>;
  T least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest(), most = Limits::has_infinity ? Limits::infinity() : Limits::max();
  T best = kind == ReductionKind::max ? least : most;
  for (int64_t i = 0; i < n; ++i) {
    if (row[i] != row[i]) return row[i]; // NaN
    best = kind == ReductionKind::max ? std::max(best, row[i]) : std::min(best, row[i]);
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput());
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

bool ReduceOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0);
  auto lead = leadingOf(typeOf(getInput()).getShape(), rows);
  return lead && llvm::all_of(getDims(), [&](int64_t d) { return d >= *lead; });
}

void ReduceOp::takeRows(Build &b, const Rows &rows, OperationState &part) {
  int64_t lead = *leadingOf(typeOf(getInput()).getShape(), rows.all);
  SmallVector<int64_t> dims;
  for (int64_t d : getDims()) dims.push_back(d - lead + 1);
  part.attributes.set(getDimsAttrName(), b.b.getDenseI64ArrayAttr(dims));
}

/// Sum: the gradient reaches every element. Maximum and minimum: elements equal to the result share it evenly
/// (torch.amax does the same).
LogicalResult ReduceOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  auto from = typeOf(getInput()).getShape();
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < int64_t(from.size()); ++i)
    if (!llvm::is_contained(getDims(), i)) kept.push_back(i);
  if (getKind() == ReductionKind::sum) {
    out[0] = b.broadcast(d[0], from, kept);
    return success();
  }
  Value winner = b.compare(Predicate::eq, getInput(), b.broadcast(getResult(), from, kept));
  Value ones = b.select(winner, b.like(getInput(), 1), b.like(getInput(), 0));
  Value share = b.div(d[0], b.reduce(ReductionKind::sum, ones, getDims()));
  out[0] = b.select(winner, b.broadcast(share, from, kept), b.like(getInput(), 0));
  return success();
}

LogicalResult ReduceOp::evaluate(Operands operands, Results results) {
  const Tensor &in = *operands[0];
  Tensor &out = results[0];
  if (getKind() == ReductionKind::sum && in.elementType().isInteger(1)) return emitOpError() << "sum has no meaning on booleans";
  // The reduced dimensions go last; then every result is one contiguous row.
  SmallVector<int64_t> perm;
  int64_t length = 1;
  for (int64_t i = 0; i < in.type.getRank(); ++i)
    if (!llvm::is_contained(getDims(), i)) perm.push_back(i);
  for (int64_t d : getDims()) {
    perm.push_back(d);
    length *= in.shape()[d];
  }
  Tensor moved;
  bool inPlace = llvm::is_sorted(perm);
  if (!inPlace) moved = transposed(in, perm);
  const Tensor &rows = inPlace ? in : moved;
  return withElement(in.elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = rows.data<T>();
    auto y = out.data<T>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = reduceRow(getKind(), x.data() + int64_t(i) * length, length);
    return success();
  });
}

//===----------------------------------------------------------------------===//
// Running sum
//===----------------------------------------------------------------------===//

LogicalResult CumSumOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput());
  if (in.getRank() == 0) return reject(loc, "nn.cumsum: a scalar has no last dimension");
  if (in.getElementType().isInteger(1)) return reject(loc, "nn.cumsum: booleans have no sum");
  out.push_back(in);
  return success();
}

/// What came before an element is what comes after it on the way back.
LogicalResult CumSumOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = b.create<CumSumOp>(getLoc(), d[0], getExclusive(), !getReverse());
  return success();
}

LogicalResult CumSumOp::evaluate(Operands operands, Results results) {
  const Tensor &in = *operands[0];
  Tensor &out = results[0];
  int64_t n = in.type.getRank() == 0 ? 1 : in.shape().back();
  return withElement(in.elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    if constexpr (std::is_same_v<T, uint8_t>) return emitOpError() << "has no meaning on booleans";
    auto x = in.data<T>();
    auto y = out.data<T>();
    for (size_t row = 0; n > 0 && row < x.size(); row += n) {
      Accumulator<T> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        size_t at = row + (getReverse() ? n - 1 - j : j);
        if (getExclusive()) y[at] = T(sum);
        sum += Accumulator<T>(x[at]);
        if (!getExclusive()) y[at] = T(sum);
      }
    }
    return success();
  });
}

//===----------------------------------------------------------------------===//
// Sum by index
//===----------------------------------------------------------------------===//

LogicalResult ScatterAddOp::verify() {
  auto indices = typeOf(getIndices()), updates = typeOf(getUpdates()), to = typeOf(getResult());
  int64_t lead = indices.getRank();
  if (updates.getRank() < lead || updates.getShape().take_front(lead) != indices.getShape() ||
      to.getElementType() != updates.getElementType() || to.getRank() != updates.getRank() - lead + 1 ||
      to.getShape().drop_front() != updates.getShape().drop_front(lead))
    return emitOpError() << updates << " by " << indices << " cannot be summed into " << to;
  return success();
}

LogicalResult ScatterAddOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[1] = b.create<GatherOp>(getLoc(), d[0], getIndices());
  return success();
}

LogicalResult ScatterAddOp::evaluate(Operands in, Results results) {
  Tensor &out = results[0];
  int64_t rows = out.shape()[0], width = rows ? out.size() / rows : 0;
  Tensor indices = in[0]->cast(IntegerType::get(getContext(), 64));
  std::vector<double> sums(out.size(), 0.0);
  return withFloat(out.elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    auto updates = in[1]->data<T>();
    auto y = out.data<T>();
    for (auto [i, row] : llvm::enumerate(indices.data<int64_t>())) {
      if (row < 0 || row >= rows) return emitOpError() << "index " << row << " is not in [0, " << rows << ")";
      for (int64_t j = 0; j < width; ++j) sums[row * width + j] += updates[i * width + j];
    }
    for (size_t i = 0; i < y.size(); ++i) y[i] = T(sums[i]);
    return success();
  });
}

} // namespace zero::nn

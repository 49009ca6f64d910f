//===- reduction.cpp - sums, extremes, running sums, and sums by index ----------------------------===//
#include "compiler/nn/eval/kernels.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

using namespace mlir;

namespace zero::nn::eval {
namespace {

/// Floats are added in double, integers in 64 bits (unsigned, where wrapping is defined).
template <typename T> using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T> T reduceRow(ReductionKind kind, const T *row, int64_t n) {
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

LogicalResult reduce(ReduceOp op, const Tensor &in, Tensor &out) {
  if (op.getKind() == ReductionKind::sum && in.elementType().isInteger(1)) return op.emitOpError() << "sum has no meaning on booleans";
  // The reduced dimensions go last; then every result is one contiguous row.
  SmallVector<int64_t> perm;
  int64_t length = 1;
  for (int64_t i = 0; i < in.type.getRank(); ++i)
    if (!llvm::is_contained(op.getDims(), i)) perm.push_back(i);
  for (int64_t d : op.getDims()) {
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
    for (size_t i = 0; i < y.size(); ++i) y[i] = reduceRow(op.getKind(), x.data() + int64_t(i) * length, length);
    return success();
  });
}

LogicalResult cumsum(CumSumOp op, const Tensor &in, Tensor &out) {
  int64_t n = in.type.getRank() == 0 ? 1 : in.shape().back();
  return withElement(in.elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    if constexpr (std::is_same_v<T, uint8_t>) return op.emitOpError() << "has no meaning on booleans";
    auto x = in.data<T>();
    auto y = out.data<T>();
    for (size_t row = 0; n > 0 && row < x.size(); row += n) {
      Accumulator<T> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        size_t at = row + (op.getReverse() ? n - 1 - j : j);
        if (op.getExclusive()) y[at] = T(sum);
        sum += Accumulator<T>(x[at]);
        if (!op.getExclusive()) y[at] = T(sum);
      }
    }
    return success();
  });
}

LogicalResult scatterAdd(ScatterAddOp op, Operands in, Tensor &out) {
  int64_t rows = out.shape()[0], width = rows ? out.size() / rows : 0;
  Tensor indices = in[0]->cast(IntegerType::get(op.getContext(), 64));
  std::vector<double> sums(out.size(), 0.0);
  return withFloat(out.elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    auto updates = in[1]->data<T>();
    auto y = out.data<T>();
    for (auto [i, row] : llvm::enumerate(indices.data<int64_t>())) {
      if (row < 0 || row >= rows) return op.emitOpError() << "index " << row << " is not in [0, " << rows << ")";
      for (int64_t j = 0; j < width; ++j) sums[row * width + j] += updates[i * width + j];
    }
    for (size_t i = 0; i < y.size(); ++i) y[i] = T(sums[i]);
    return success();
  });
}

} // namespace

LogicalResult reduction(Operation *op, Operands in, Results out) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ReduceOp>([&](ReduceOp o) { return reduce(o, *in[0], out[0]); })
      .Case<CumSumOp>([&](CumSumOp o) { return cumsum(o, *in[0], out[0]); })
      .Case<ScatterAddOp>([&](ScatterAddOp o) { return scatterAdd(o, in, out[0]); })
      .Default([](Operation *unknown) -> LogicalResult { return unknown->emitOpError() << "has no rule in the interpreter"; });
}

} // namespace zero::nn::eval

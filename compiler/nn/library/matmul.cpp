//===- matmul.cpp - the matrix product ---------------------------------------------------------===//
#include "compiler/nn/eval/gelu.h"
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

LogicalResult MatMulOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto l = typeOf(a.getLhs()), r = typeOf(a.getRhs());
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

LogicalResult MatMulOp::verify() {
  if (getOnto() && getOnto().getType() != getType()) return emitOpError() << "of " << getType() << " is added to " << getOnto().getType();
  return success();
}

bool MatMulOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0);
  return !getOnto() && !getTransposeLhs() && typeOf(getResult()).getRank() == 2 && typeOf(getResult()).getDimSize(0) == rows;
}

void MatMulOp::takeRows(Build &, const Rows &, OperationState &) {}

/// C = op(A) op(B). The gradient of a stored operand is again one product whose flags do the transposing:
///   dA = dC op(B)^T,  or op(B) dC^T when A is stored transposed;
///   dB = op(A)^T dC,  or dC^T op(A) when B is stored transposed.
LogicalResult MatMulOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  if (getOnto()) return emitOpError("that is added to something is backward's own and has no gradient");
  Value lhs = getLhs(), rhs = getRhs(), g = d[0];
  bool ta = getTransposeLhs(), tb = getTransposeRhs();
  auto product = [&](Value x, Value y, bool tx, bool ty) -> Value { return b.create<MatMulOp>(getLoc(), x, y, tx, ty); };
  out[0] = ta ? product(rhs, g, tb, true) : product(g, rhs, false, !tb);
  out[1] = tb ? product(g, lhs, true, ta) : product(lhs, g, !ta, false);
  return success();
}

/// `t` with its last two dimensions exchanged.
static Tensor swapped(const Tensor &t) {
  SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, t.type.getRank()));
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return transposed(t, perm);
}

/// Each row of op(left) · op(right): `begin` puts into its sums, in double, what they are added to, and `end` takes them.
template <typename T, typename Begin, typename End>
static void multiply(const Tensor &left, const Tensor &right, bool transposeLeft, bool transposeRight, Begin begin, End end) {
  Tensor l, r; // plain [m, k] and [k, n]
  if (transposeLeft) l = swapped(left);
  if (transposeRight) r = swapped(right);
  const Tensor &lhs = transposeLeft ? l : left, &rhs = transposeRight ? r : right;
  int64_t rank = lhs.type.getRank(), m = lhs.shape()[rank - 2], k = lhs.shape()[rank - 1], n = rhs.shape()[rank - 1];
  int64_t batch = rank == 3 ? lhs.shape()[0] : 1;
  std::vector<double> sums(n);
  for (int64_t row = 0; row < batch * m; ++row) {
    const T *a = lhs.data<T>().data() + row * k, *b = rhs.data<T>().data() + row / m * k * n;
    begin(row, sums);
    for (int64_t p = 0; p < k; ++p) {
      double factor = a[p];
      const T *line = b + p * n;
      for (int64_t j = 0; j < n; ++j) sums[j] += factor * line[j];
    }
    end(row, sums);
  }
}

LogicalResult MatMulOp::evaluate(Operands in, Results results) {
  return withFloat(results[0].elementType(), [&](auto e) {
    using T = decltype(e);
    auto rowOf = [](auto data, int64_t row, size_t n) { return data.slice(size_t(row) * n, n); };
    auto begin = [&](int64_t row, std::vector<double> &sums) {
      if (getOnto())
        llvm::copy(rowOf(in[2]->data<T>(), row, sums.size()), sums.begin());
      else
        std::fill(sums.begin(), sums.end(), 0.0);
    };
    multiply<T>(*in[0], *in[1], getTransposeLhs(), getTransposeRhs(), begin, [&](int64_t row, const std::vector<double> &sums) {
      llvm::transform(sums, rowOf(results[0].data<T>(), row, sums.size()).begin(), [](double sum) { return T(sum); });
    });
    return success();
  });
}

//===----------------------------------------------------------------------===//
// With an epilogue
//===----------------------------------------------------------------------===//

LogicalResult MatMulEpilogueOp::verify() {
  auto l = typeOf(getLhs()), r = typeOf(getRhs());
  if (l.getRank() != 2 || r.getRank() != 2 || l.getElementType() != r.getElementType())
    return emitOpError() << "multiplies matrices of one type, not " << l << " and " << r;
  int64_t m = l.getDimSize(getTransposeLhs()), k = l.getDimSize(!getTransposeLhs()), n = r.getDimSize(!getTransposeRhs());
  bool isGelu = getEpilogue() == Epilogue::gelu;
  if (k != r.getDimSize(getTransposeRhs()) || getResult().getType() != with(l, {m, n}) || bool(getAux()) != isGelu ||
      (isGelu && getAux().getType() != getResult().getType()))
    return emitOpError() << "of " << l << " and " << r << " has other results";
  auto other = getEpilogue() == Epilogue::gelu_grad ? with(l, {m, n}) : with(l, {n});
  if (getOther().getType() != other) return emitOpError() << "reads " << getOther().getType() << ", expected " << other;
  return success();
}

LogicalResult MatMulEpilogueOp::evaluate(Operands in, Results results) {
  return withFloat(results[0].elementType(), [&](auto e) {
    using T = decltype(e);
    bool ofSlope = getEpilogue() == Epilogue::gelu_grad;
    auto begin = [&](int64_t, std::vector<double> &sums) {
      if (ofSlope)
        std::fill(sums.begin(), sums.end(), 0.0);
      else
        llvm::copy(in[2]->data<T>(), sums.begin());
    };
    multiply<T>(*in[0], *in[1], getTransposeLhs(), getTransposeRhs(), begin, [&](int64_t row, const std::vector<double> &sums) {
      for (size_t j = 0, at = size_t(row) * sums.size(); j < sums.size(); ++j, ++at) {
        double sum = sums[j];
        if (getAux()) results[1].data<T>()[at] = T(sum), sum = tanhGelu(sum);
        if (ofSlope) sum *= tanhGeluSlope(double(in[2]->data<T>()[at]));
        results[0].data<T>()[at] = T(sum);
      }
    });
    return success();
  });
}

} // namespace zero::nn

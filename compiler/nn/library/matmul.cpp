//===- matmul.cpp - the matrix product ---------------------------------------------------------===//
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

LogicalResult MatMulOp::evaluate(Operands in, Results results) {
  Tensor &out = results[0];
  Tensor l, r; // plain [m, k] and [k, n]
  if (getTransposeLhs()) l = swapped(*in[0]);
  if (getTransposeRhs()) r = swapped(*in[1]);
  const Tensor &lhs = getTransposeLhs() ? l : *in[0], &rhs = getTransposeRhs() ? r : *in[1];
  int64_t rank = out.type.getRank(), m = out.shape()[rank - 2], n = out.shape()[rank - 1], k = lhs.shape()[rank - 1];
  int64_t batch = rank == 3 ? out.shape()[0] : 1;
  return withFloat(out.elementType(), [&](auto e) {
    using T = decltype(e);
    std::vector<double> sum(n);
    for (int64_t row = 0; row < batch * m; ++row) {
      const T *a = lhs.data<T>().data() + row * k, *b = rhs.data<T>().data() + row / m * k * n;
      T *y = out.data<T>().data() + row * n;
      if (getOnto())
        llvm::copy(in[2]->data<T>().slice(size_t(row) * size_t(n), size_t(n)), sum.begin());
      else
        std::fill(sum.begin(), sum.end(), 0.0);
      for (int64_t p = 0; p < k; ++p) {
        double factor = a[p];
        const T *line = b + p * n;
        for (int64_t j = 0; j < n; ++j) sum[j] += factor * line[j];
      }
      for (int64_t j = 0; j < n; ++j) y[j] = T(sum[j]);
    }
    return success();
  });
}

} // namespace zero::nn

//===- product.cpp - matrix products and attention -----------------------------------------------===//
#include "compiler/nn/eval/kernels.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace zero::nn::eval {
namespace {

/// `t` with its last two dimensions exchanged.
Tensor swapped(const Tensor &t) {
  SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, t.type.getRank()));
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return transposed(t, perm);
}

LogicalResult matmul(MatMulOp op, Operands in, Tensor &out) {
  Tensor l, r; // plain [m, k] and [k, n]
  if (op.getTransposeLhs()) l = swapped(*in[0]);
  if (op.getTransposeRhs()) r = swapped(*in[1]);
  const Tensor &lhs = op.getTransposeLhs() ? l : *in[0], &rhs = op.getTransposeRhs() ? r : *in[1];
  int64_t rank = out.type.getRank(), m = out.shape()[rank - 2], n = out.shape()[rank - 1], k = lhs.shape()[rank - 1];
  int64_t batch = rank == 3 ? out.shape()[0] : 1;
  return withFloat(out.elementType(), [&](auto e) {
    using T = decltype(e);
    std::vector<double> sum(n);
    for (int64_t row = 0; row < batch * m; ++row) {
      const T *a = lhs.data<T>().data() + row * k, *b = rhs.data<T>().data() + row / m * k * n;
      T *y = out.data<T>().data() + row * n;
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

/// The sizes of one attention, where its rows lie, and its scores.
template <typename T> struct Attention {
  int64_t batch, heads, queries, dim, groups, keys; ///< groups: heads that share one key head
  const T *q, *k, *v;
  Tensor mask; ///< in T, or without elements
  bool masked, causal;
  double scale;

  Attention(Operands in, bool masked, bool causal, double scale) : masked(masked), causal(causal), scale(scale) {
    auto qs = in[0]->shape(), ks = in[1]->shape();
    batch = qs[0], heads = qs[1], queries = qs[2], dim = qs[3], groups = qs[1] / ks[1], keys = ks[2];
    q = in[0]->data<T>().data(), k = in[1]->data<T>().data(), v = in[2]->data<T>().data();
    if (masked) mask = in[3]->cast(in[0]->elementType());
  }

  int64_t queryRow(int64_t b, int64_t h, int64_t i) const { return (b * heads + h) * queries + i; }
  /// Row of key and value `j` seen by head `h`.
  int64_t keyRow(int64_t b, int64_t h, int64_t j) const { return (b * (heads / groups) + h / groups) * keys + j; }

  static double dot(const T *a, const T *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(a[i]) * b[i];
    return sum;
  }

  /// Scores of one query over all keys; what is not seen is -inf.
  void scores(int64_t b, int64_t h, int64_t i, std::vector<double> &out) const {
    out.resize(keys);
    const T *query = q + queryRow(b, h, i) * dim;
    int64_t seen = causal ? std::clamp<int64_t>(i + keys - queries + 1, 0, keys) : keys;
    for (int64_t j = 0; j < keys; ++j) out[j] = j < seen ? scale * dot(query, k + keyRow(b, h, j) * dim, dim) : -INFINITY;
    if (!masked) return;
    auto shape = mask.shape();
    auto at = [&](int d, int64_t index) { return shape[d] == 1 ? 0 : index; };
    const T *line = mask.template data<T>().data() + ((at(0, b) * shape[1] + at(1, h)) * shape[2] + at(2, i)) * shape[3];
    for (int64_t j = 0; j < keys; ++j) out[j] += line[at(3, j)];
  }
};

LogicalResult attention(AttentionOp op, Operands in, Results out) {
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    Attention<T> a(in, bool(op.getMask()), op.getCausal(), op.getScale().convertToDouble());
    T *y = out[0].data<T>().data(), *lse = out[1].data<T>().data();
    std::vector<double> p, sum;
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.heads; ++h)
        for (int64_t i = 0; i < a.queries; ++i) {
          a.scores(b, h, i, p);
          int64_t row = a.queryRow(b, h, i);
          double peak = -INFINITY, total = 0;
          for (double s : p) peak = std::max(peak, s);
          if (peak == -INFINITY) { // sees nothing: zeros
            lse[row] = T(-INFINITY);
            continue;
          }
          for (double &s : p) total += s = std::exp(s - peak);
          sum.assign(a.dim, 0.0);
          for (int64_t j = 0; j < a.keys; ++j)
            if (const T *value = a.v + a.keyRow(b, h, j) * a.dim; p[j] != 0)
              for (int64_t d = 0; d < a.dim; ++d) sum[d] += p[j] * value[d];
          for (int64_t d = 0; d < a.dim; ++d) y[row * a.dim + d] = T(sum[d] / total);
          lse[row] = T(peak + std::log(total));
        }
    return success();
  });
}

LogicalResult attentionGrad(AttentionGradOp op, Operands in, Results out) {
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    size_t next = op.getMask() ? 4 : 3;
    Attention<T> a(in, bool(op.getMask()), op.getCausal(), op.getScale().convertToDouble());
    const T *y = in[next]->data<T>().data(), *lse = in[next + 1]->data<T>().data(), *dy = in[next + 2]->data<T>().data();
    std::vector<double> dq(out[0].size()), dk(out[1].size()), dv(out[2].size()), p;
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.heads; ++h)
        for (int64_t i = 0; i < a.queries; ++i) {
          int64_t row = a.queryRow(b, h, i);
          if (double(lse[row]) == -INFINITY) continue;
          a.scores(b, h, i, p);
          const T *g = dy + row * a.dim, *query = a.q + row * a.dim;
          double mean = a.dot(g, y + row * a.dim, a.dim);
          for (int64_t j = 0; j < a.keys; ++j) {
            double weight = std::exp(p[j] - double(lse[row]));
            if (weight == 0) continue;
            int64_t at = a.keyRow(b, h, j) * a.dim;
            double ds = weight * (a.dot(g, a.v + at, a.dim) - mean) * a.scale;
            for (int64_t d = 0; d < a.dim; ++d) {
              dq[row * a.dim + d] += ds * a.k[at + d];
              dk[at + d] += ds * query[d];
              dv[at + d] += weight * g[d];
            }
          }
        }
    const std::vector<double> *sums[] = {&dq, &dk, &dv};
    for (int i = 0; i < 3; ++i) std::transform(sums[i]->begin(), sums[i]->end(), out[i].data<T>().begin(), [](double s) { return T(s); });
    return success();
  });
}

} // namespace

LogicalResult product(Operation *op, Operands in, Results out) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<MatMulOp>([&](MatMulOp o) { return matmul(o, in, out[0]); })
      .Case<AttentionOp>([&](AttentionOp o) { return attention(o, in, out); })
      .Case<AttentionGradOp>([&](AttentionGradOp o) { return attentionGrad(o, in, out); })
      .Default([](Operation *unknown) -> LogicalResult { return unknown->emitOpError() << "has no rule in the interpreter"; });
}

} // namespace zero::nn::eval

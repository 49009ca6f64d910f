//===- composite.cpp - normalisations, softmax, loss, and what needs no operand -------------------===//
#include "compiler/nn/eval/kernels.h"
#include "compiler/nn/random.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace zero::nn::eval {
namespace {

int64_t columnsOf(const Tensor &t) { return t.type.getRank() == 0 ? 1 : t.shape().back(); }

LogicalResult iota(IotaOp op, Tensor &out) {
  int64_t inner = 1, size = out.shape()[op.getDim()];
  for (int64_t n : out.shape().drop_front(op.getDim() + 1)) inner *= n;
  return withElement(out.elementType(), [&](auto e) {
    auto y = out.data<decltype(e)>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = decltype(e)(int64_t(i) / inner % size);
    return success();
  });
}

/// Where the stream of a tensor begins: the index of its first element.
uint64_t firstIndex(const Tensor &seed, int64_t elements, int64_t samples) {
  return samples ? uint64_t(seed.data<int64_t>()[1]) * uint64_t(elements / samples) : 0;
}

LogicalResult random(RandomOp op, const Tensor &seed, Tensor &out) {
  if (seed.size() != 2 || (op.getSamples() && out.size() % int64_t(op.getSamples())))
    return op.emitOpError() << "needs a seed of two numbers and samples that divide its " << out.size() << " elements";
  RandomKey key = randomKey(seed.data<int64_t>()[0], op.getId());
  uint64_t first = firstIndex(seed, out.size(), op.getSamples());
  auto y = out.data<float>();
  for (size_t i = 0; i < y.size(); ++i) y[i] = uniform(key, first + i);
  return success();
}

LogicalResult dropout(DropoutOp op, Operands in, Tensor &out) {
  const Tensor &seed = *in[1];
  if (seed.size() != 2 || (op.getSamples() && out.size() % int64_t(op.getSamples())))
    return op.emitOpError() << "needs a seed of two numbers and samples that divide its " << out.size() << " elements";
  RandomKey key = randomKey(seed.data<int64_t>()[0], op.getId());
  uint64_t first = firstIndex(seed, out.size(), op.getSamples());
  float rate = op.getRate().convertToFloat(), factor = float(1.0 / (1.0 - double(rate)));
  return withFloat(out.elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>();
    auto y = out.data<T>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = uniform(key, first + i) >= rate ? x[i] * T(factor) : T(0);
    return success();
  });
}

/// log(sum(exp(row))).
template <typename T> double logSumExp(const T *row, int64_t n) {
  double peak = -INFINITY, sum = 0;
  for (int64_t j = 0; j < n; ++j) peak = std::max(peak, double(row[j]));
  if (peak == -INFINITY) return peak;
  for (int64_t j = 0; j < n; ++j) sum += std::exp(double(row[j]) - peak);
  return peak + std::log(sum);
}

LogicalResult softmax(const Tensor &in, Tensor &out) {
  int64_t n = columnsOf(in);
  return withFloat(in.elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in.data<T>();
    auto y = out.data<T>();
    for (size_t row = 0; n > 0 && row < x.size(); row += n) {
      double peak = -INFINITY, sum = 0;
      for (int64_t j = 0; j < n; ++j) peak = std::max(peak, double(x[row + j]));
      std::vector<double> exps(n);
      for (int64_t j = 0; j < n; ++j) sum += exps[j] = std::exp(double(x[row + j]) - peak); // a row of -inf gives NaN, as everywhere
      for (int64_t j = 0; j < n; ++j) y[row + j] = T(exps[j] / sum);
    }
    return success();
  });
}

LogicalResult layerNorm(LayerNormOp op, Operands in, Results out) {
  int64_t n = columnsOf(*in[0]);
  double eps = op.getEps().convertToDouble();
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>();
    Tensor scale = in[1]->cast(in[0]->elementType()), bias = op.getBias() ? in[2]->cast(in[0]->elementType()) : Tensor(scale.type);
    auto g = scale.template data<T>(), b = bias.template data<T>();
    auto y = out[0].data<T>(), means = out[1].data<T>(), rstds = out[2].data<T>();
    for (size_t row = 0; row < means.size(); ++row) {
      const T *r = x.data() + row * n;
      double sum = 0, squares = 0;
      for (int64_t j = 0; j < n; ++j) sum += r[j];
      double mean = sum / n;
      for (int64_t j = 0; j < n; ++j) squares += (r[j] - mean) * (r[j] - mean);
      double rstd = 1 / std::sqrt(squares / n + eps);
      for (int64_t j = 0; j < n; ++j) y[row * n + j] = T((r[j] - mean) * rstd * g[j] + b[j]);
      means[row] = T(mean);
      rstds[row] = T(rstd);
    }
    return success();
  });
}

LogicalResult rmsNorm(RmsNormOp op, Operands in, Results out) {
  int64_t n = columnsOf(*in[0]);
  double eps = op.getEps().convertToDouble();
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>();
    Tensor scale = in[1]->cast(in[0]->elementType());
    auto g = scale.template data<T>();
    auto y = out[0].data<T>(), rstds = out[1].data<T>();
    for (size_t row = 0; row < rstds.size(); ++row) {
      const T *r = x.data() + row * n;
      double squares = 0;
      for (int64_t j = 0; j < n; ++j) squares += double(r[j]) * r[j];
      double rstd = 1 / std::sqrt(squares / n + eps);
      for (int64_t j = 0; j < n; ++j) y[row * n + j] = T(r[j] * rstd * g[j]);
      rstds[row] = T(rstd);
    }
    return success();
  });
}

LogicalResult crossEntropy(CrossEntropyOp op, Operands in, Results out) {
  int64_t classes = in[0]->shape()[1], ignore = op.getIgnoreIndex();
  Tensor wide = in[1]->cast(IntegerType::get(op.getContext(), 64));
  auto labels = wide.data<int64_t>();
  double scale = in[2]->at(0), loss = 0;
  return withFloat(in[0]->elementType(), [&](auto e) -> LogicalResult {
    using T = decltype(e);
    auto logits = in[0]->data<T>();
    auto lse = out[1].data<T>();
    for (size_t row = 0; row < lse.size(); ++row) {
      const T *r = logits.data() + row * classes;
      double norm = logSumExp(r, classes);
      lse[row] = T(norm);
      if (labels[row] == ignore) continue;
      if (labels[row] < 0 || labels[row] >= classes)
        return op.emitOpError() << "label " << labels[row] << " of row " << row << " is not in [0, " << classes << ")";
      double mean = 0; // of the logits, by the label's distribution
      for (int64_t c = 0; c < classes && op.smoothing() > 0; ++c) mean += op.elsewhere() * double(r[c]);
      loss += norm - (1 - op.smoothing()) * double(r[labels[row]]) - mean;
    }
    out[0].data<T>()[0] = T(loss * scale);
    return success();
  });
}

} // namespace

LogicalResult composite(Operation *op, Operands in, Results out) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<IotaOp>([&](IotaOp o) { return iota(o, out[0]); })
      .Case<RandomOp>([&](RandomOp o) { return random(o, *in[0], out[0]); })
      .Case<DropoutOp>([&](DropoutOp o) { return dropout(o, in, out[0]); })
      .Case<SoftmaxOp>([&](auto) { return softmax(*in[0], out[0]); })
      .Case<LayerNormOp>([&](LayerNormOp o) { return layerNorm(o, in, out); })
      .Case<RmsNormOp>([&](RmsNormOp o) { return rmsNorm(o, in, out); })
      .Case<CrossEntropyOp>([&](CrossEntropyOp o) { return crossEntropy(o, in, out); })
      .Default([](Operation *unknown) -> LogicalResult { return unknown->emitOpError() << "has no rule in the interpreter"; });
}

} // namespace zero::nn::eval

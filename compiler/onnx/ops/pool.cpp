//===- pool.cpp - means and maxima of windows -----------------------------------------------------===//
#include "compiler/onnx/ops/window.h"
#include "compiler/onnx/origin.h"
#include <cmath>

namespace zero::onnx {
namespace {

/// All of an image at once: [batch, channels, 1…].
template <nn::ReductionKind kind> Val allAtOnce(NodeContext &c, const Val &x) {
  Ints dims, shape{x.dim(0), x.dim(1)};
  int64_t count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) {
    dims.push_back(d);
    shape.push_back(1);
    count *= x.dim(d);
  }
  Val r = c.e.reduce(kind, x, dims);
  if (kind == nn::ReductionKind::sum && r) r = c.e.mul(r, c.e.scalar(1.0 / double(count), r.element()));
  return c.e.reshape(r, shape);
}

template <nn::ReductionKind kind> Vals globalPool(NodeContext &c) {
  Val x = c.in(0);
  if (!x || x.rank() < 3) return c.fail("the input has no dimensions beyond batch and channels");
  return {allAtOnce<kind>(c, x)};
}

/// Tap by tap: sums of strided slices.
Val sumOfTaps(NodeContext &c, const Val &x, const Window &g) {
  Ints low{0, 0}, high{0, 0}, at(g.kernel.size(), 0);
  low.append(g.before);
  high.append(g.after);
  Val padded = c.e.pad(x, 0, low, high), all;
  if (!padded) return {};
  for (int64_t t = 0; t < g.taps && !c.e.failed(); ++t, advance(at, g)) {
    Val tap = tapOf(c, padded, g, at);
    all = all ? c.e.add(all, tap) : tap;
  }
  return all;
}

/// The largest element of a window is the largest of its rows' largest: dimension by dimension, the last first, which takes the sum of
/// the kernel's sizes where tap by tap takes their product. Of equal elements the first in row-major order is chosen either way.
Val largestOfWindow(NodeContext &c, const Val &x, const Window &g) {
  Ints low{0, 0}, high{0, 0};
  low.append(g.before);
  high.append(g.after);
  Val all = c.e.pad(x, -HUGE_VAL, low, high);
  for (int64_t i = int64_t(g.kernel.size()) - 1; i >= 0 && all; --i) {
    Val from = all;
    Ints start(x.rank(), 0), size(from.shape().begin(), from.shape().end()), step(x.rank(), 1);
    size[i + 2] = g.out[i];
    step[i + 2] = g.out[i] == 1 ? 1 : g.stride[i];
    all = Val();
    for (int64_t t = 0; t < g.kernel[i] && !c.e.failed(); ++t, start[i + 2] += g.dilation[i]) {
      Val tap = c.e.slice(from, start, size, step);
      all = all ? c.e.binary<nn::MaxOp>(all, tap) : tap;
    }
  }
  return all;
}

/// How many elements each window of an average has.
Val counts(NodeContext &c, const Val &x, Window g) {
  bool padding = c.integer("count_include_pad", 0);
  if (padding && llvm::all_of(g.beyond, [](int64_t n) { return n == 0; })) return c.e.scalar(double(g.taps), x.element());
  Ints shape{1, 1};
  for (size_t i = 0; i < g.kernel.size(); ++i)
    shape.push_back(x.dim(int64_t(i) + 2) + (padding ? g.before[i] + g.after[i] - g.beyond[i] : 0));
  if (padding) g.before.assign(g.kernel.size(), 0), g.after = g.beyond;
  return sumOfTaps(c, c.e.full(shape, 1, x.element()), g);
}

/// What PyTorch's call says that sums are divided by in place of the size of a window, which its newer exporter drops; 0: nothing.
double divisorOf(const Node &node) {
  double divisor = 0;
  for (StringRef function : {"avg_pool2d.default", "avg_pool3d.default"})
    if (auto call = argumentsOf(node, function); call.size() > 2 && (call.end()[-2] == "True" || call.end()[-2] == "False"))
      if (call.back().getAsDouble(divisor)) divisor = 0;
  return divisor;
}

template <bool average> Vals pool(NodeContext &c) {
  constexpr auto kind = average ? nn::ReductionKind::sum : nn::ReductionKind::max;
  Val x = c.in(0);
  Window g;
  auto kernel = c.ints("kernel_shape");
  if (!x || !kernel) return c.fail("it has no kernel_shape");
  if (x.rank() < 3 || !x.isFloat())
    return c.fail("an input of shape " + text(x.shape()) + " is not supported, only images of floating-point numbers");
  g.kernel = *kernel;
  if (!window(c, x, g, c.integer("ceil_mode", 0))) return {};
  if (c.node.outputs.size() > 1 && !c.node.outputs[1].empty()) return c.fail("the places of the maxima are not supported");
  double divisor = average ? divisorOf(c.node) : 0;
  if (divisor == 0 && Shape(g.kernel) == x.shape().drop_front(2) && llvm::all_of(g.out, [](int64_t n) { return n == 1; }) &&
      llvm::all_of(g.before, [](int64_t n) { return n == 0; }) && llvm::all_of(g.dilation, [](int64_t n) { return n == 1; }))
    return {allAtOnce<kind>(c, x)};
  if (g.taps > kMostTaps)
    return c.fail("windows of " + llvm::Twine(g.taps) + " elements are not supported (at most " + llvm::Twine(kMostTaps) + ")");
  if (!average) return {largestOfWindow(c, x, g)};
  Val all = sumOfTaps(c, x, g);
  return {all ? c.e.div(all, divisor != 0 ? c.e.scalar(divisor, x.element()) : counts(c, x, g)) : Val()};
}

} // namespace

void registerPooling(Registry &r) {
  r["GlobalAveragePool"] = {globalPool<nn::ReductionKind::sum>};
  r["GlobalMaxPool"] = {globalPool<nn::ReductionKind::max>};
  r["AveragePool"] = {pool<true>};
  r["MaxPool"] = {pool<false>};
}

} // namespace zero::onnx

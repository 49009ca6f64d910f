//===- pool.cpp - means and maxima of windows -----------------------------------------------------===//
#include "compiler/onnx/ops/window.h"
#include <cmath>

namespace zero::onnx {
namespace {

/// All of an image at once: [batch, channels, 1…].
template <nn::ReductionKind kind> Vals globalPool(NodeContext &c) {
  Val x = c.in(0);
  if (!x || x.rank() < 3) return c.fail("the input has no dimensions beyond batch and channels");
  Ints dims, shape{x.dim(0), x.dim(1)};
  int64_t count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) {
    dims.push_back(d);
    shape.push_back(1);
    count *= x.dim(d);
  }
  Val r = c.e.reduce(kind, x, dims);
  if (kind == nn::ReductionKind::sum && r) r = c.e.mul(r, c.e.scalar(1.0 / double(count), r.element()));
  return {c.e.reshape(r, shape)};
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

template <bool average> Vals pool(NodeContext &c) {
  Val x = c.in(0);
  Window g;
  auto kernel = c.ints("kernel_shape");
  if (!x || !kernel) return c.fail("it has no kernel_shape");
  if (x.rank() < 3 || !x.isFloat())
    return c.fail("an input of shape " + text(x.shape()) + " is not supported, only images of floating-point numbers");
  g.kernel = *kernel;
  if (!window(c, x, g)) return {};
  if (g.taps > kMostTaps)
    return c.fail("windows of " + llvm::Twine(g.taps) + " elements are not supported (at most " + llvm::Twine(kMostTaps) + ")");
  if (c.node.outputs.size() > 1 && !c.node.outputs[1].empty()) return c.fail("the places of the maxima are not supported");
  if (c.integer("ceil_mode", 0))
    for (size_t i = 0; i < g.kernel.size(); ++i)
      if ((x.dim(int64_t(i) + 2) + g.before[i] + g.after[i] - (g.kernel[i] - 1) * g.dilation[i] - 1) % g.stride[i])
        return c.fail("ceil_mode=1 with a last window that is cut off is not supported");
  if (!average) return {largestOfWindow(c, x, g)};
  Val all = sumOfTaps(c, x, g);
  if (!all) return {};
  if (c.integer("count_include_pad", 0)) return {c.e.mul(all, c.e.scalar(1.0 / double(g.taps), x.element()))};
  Ints one{1, 1};
  one.append(x.shape().begin() + 2, x.shape().end());
  return {c.e.div(all, sumOfTaps(c, c.e.full(one, 1, x.element()), g))}; // how many elements each window really has
}

} // namespace

void registerPooling(Registry &r) {
  r["GlobalAveragePool"] = {globalPool<nn::ReductionKind::sum>};
  r["GlobalMaxPool"] = {globalPool<nn::ReductionKind::max>};
  r["AveragePool"] = {pool<true>};
  r["MaxPool"] = {pool<false>};
}

} // namespace zero::onnx

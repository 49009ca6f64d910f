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

/// Tap by tap: sums or larger elements of strided slices.
Val combineTaps(NodeContext &c, const Val &x, const Window &g, bool average, double border) {
  Ints low{0, 0}, high{0, 0}, at(g.kernel.size(), 0);
  low.append(g.before);
  high.append(g.after);
  Val padded = c.e.pad(x, border, low, high), all;
  if (!padded) return {};
  for (int64_t t = 0; t < g.taps && !c.e.failed(); ++t, advance(at, g)) {
    Val tap = tapOf(c, padded, g, at);
    all = !all ? tap : average ? c.e.add(all, tap) : c.e.binary<nn::MaxOp>(all, tap);
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
  if (g.taps > 1024) return c.fail("windows of " + llvm::Twine(g.taps) + " elements are not supported (at most 1024)");
  if (c.node.outputs.size() > 1 && !c.node.outputs[1].empty()) return c.fail("the places of the maxima are not supported");
  if (c.integer("ceil_mode", 0))
    for (size_t i = 0; i < g.kernel.size(); ++i)
      if ((x.dim(int64_t(i) + 2) + g.before[i] + g.after[i] - (g.kernel[i] - 1) * g.dilation[i] - 1) % g.stride[i])
        return c.fail("ceil_mode=1 with a last window that is cut off is not supported");
  Val all = combineTaps(c, x, g, average, average ? 0 : -HUGE_VAL);
  if (!average || !all) return {all};
  if (c.integer("count_include_pad", 0)) return {c.e.mul(all, c.e.scalar(1.0 / double(g.taps), x.element()))};
  Ints one{1, 1};
  one.append(x.shape().begin() + 2, x.shape().end());
  return {c.e.div(all, combineTaps(c, c.e.full(one, 1, x.element()), g, true, 0))}; // how many elements each window really has
}

} // namespace

void registerPooling(Registry &r) {
  r["GlobalAveragePool"] = {globalPool<nn::ReductionKind::sum>};
  r["GlobalMaxPool"] = {globalPool<nn::ReductionKind::max>};
  r["AveragePool"] = {pool<true>};
  r["MaxPool"] = {pool<false>};
}

} // namespace zero::onnx

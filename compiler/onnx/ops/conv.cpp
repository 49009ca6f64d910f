//===- conv.cpp - convolutions as matrix products ------------------------------------------------===//
// Transformers convolve to cut patches out of images or frames out of sound. Windows that do not overlap are
// a reshape; others are gathered offset by offset. Either way one product with the weight follows.
#include "compiler/onnx/ops/window.h"

namespace zero::onnx {
namespace {

/// The columns [batch, out…, channels, kernel…] of windows that do not overlap.
Val patches(NodeContext &c, Val x, const Window &g) {
  int64_t n = int64_t(g.kernel.size());
  Ints from(n + 2, 0), size{x.dim(0), x.dim(1)}, cut{x.dim(0), x.dim(1)}, inner{x.dim(0), x.dim(1)};
  for (int64_t i = 0; i < n; ++i) { // crop or fill up to whole strides
    int64_t want = g.out[i] * g.stride[i];
    size.push_back(std::min(want, x.dim(i + 2)));
  }
  x = c.e.slice(x, from, size, Ints(n + 2, 1));
  Ints high(n + 2, 0);
  for (int64_t i = 0; i < n; ++i) {
    high[i + 2] = g.out[i] * g.stride[i] - size[i + 2];
    cut.append({g.out[i], g.stride[i]});
    inner.append({g.out[i], g.kernel[i]});
  }
  x = c.e.reshape(c.e.pad(x, 0, Ints(n + 2, 0), high), cut);
  x = c.e.slice(x, Ints(2 * n + 2, 0), inner, Ints(2 * n + 2, 1));
  Ints perm{0};
  for (int64_t i = 0; i < n; ++i) perm.push_back(2 + 2 * i);
  perm.push_back(1);
  for (int64_t i = 0; i < n; ++i) perm.push_back(3 + 2 * i);
  return c.e.transpose(x, perm);
}

/// The same columns of any windows: one strided slice per tap of the kernel.
Val columns(NodeContext &c, Val x, const Window &g) {
  int64_t n = int64_t(g.kernel.size());
  Ints low{0, 0}, high{0, 0};
  low.append(g.before);
  high.append(g.after);
  x = c.e.pad(x, 0, low, high);
  if (!x) return {};
  Vals taps;
  Ints at(n, 0), shape{x.dim(0), x.dim(1), 1};
  shape.append(g.out);
  for (int64_t t = 0; t < g.taps; ++t, advance(at, g)) taps.push_back(c.e.reshape(tapOf(c, x, g, at), shape));
  Val all = c.e.concat(taps, 2); // [batch, channels, taps, out…]
  Ints perm{0};
  for (int64_t i = 0; i < n; ++i) perm.push_back(3 + i);
  perm.append({1, 2});
  return c.e.transpose(all, perm);
}

Vals conv(NodeContext &c) {
  Val x = c.in(0), w = c.in(1);
  if (!x || !w) return {};
  int64_t groups = c.integer("group", 1);
  if (x.rank() < 3 || w.rank() != x.rank() || groups <= 0 || groups > x.dim(1) || x.dim(1) % groups || w.dim(0) % groups ||
      w.dim(1) != x.dim(1) / groups)
    return c.fail("input, weight and group do not fit together");
  Window g;
  g.kernel.assign(w.shape().begin() + 2, w.shape().end());
  if (auto shape = c.ints("kernel_shape"); shape && *shape != g.kernel) return c.fail("kernel_shape is not the weight's");
  if (!window(c, x, g)) return {};
  bool apart = true;
  for (size_t i = 0; i < g.kernel.size(); ++i) apart &= g.stride[i] >= g.kernel[i] && g.dilation[i] == 1 && !g.before[i] && !g.after[i];
  if (!apart && g.taps > 1024)
    return c.fail("overlapping windows of " + llvm::Twine(g.taps) + " elements are not supported (at most 1024)");
  int64_t batch = x.dim(0), channels = x.dim(1) / groups, filters = w.dim(0) / groups, depth = channels * g.taps;
  Val rows = apart ? patches(c, x, g) : columns(c, x, g);
  Val y;
  if (groups == 1) {
    y = c.e.matmul(c.e.reshape(rows, {batch * g.places, depth}), c.e.reshape(w, {filters, depth}), false, true);
  } else {
    rows = c.e.transpose(c.e.reshape(rows, {batch * g.places, groups, depth}), {1, 0, 2});
    y = c.e.matmul(rows, c.e.reshape(w, {groups, filters, depth}), false, true);
    y = c.e.reshape(c.e.transpose(y, {1, 0, 2}), {batch * g.places, groups * filters});
  }
  if (c.has(2)) y = c.e.add(y, c.inputs[2]);
  Ints shape{batch};
  shape.append(g.out);
  shape.push_back(groups * filters);
  Ints perm{0, int64_t(shape.size()) - 1};
  for (size_t i = 1; i + 1 < shape.size(); ++i) perm.push_back(int64_t(i));
  return {c.e.transpose(c.e.reshape(y, shape), perm)};
}

} // namespace

void registerConvolution(Registry &r) { r["Conv"] = {conv}; }

} // namespace zero::onnx

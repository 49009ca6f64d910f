//===- conv.cpp - convolutions as matrix products ------------------------------------------------===//
// Transformers convolve to cut patches out of images or frames out of sound. Windows that do not overlap are
// a reshape; others are gathered offset by offset. Either way one product with the weight follows, but where
// each channel has a kernel of its own and there is nothing to sum over channels.
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

/// One dimension for all taps of the kernel before the channels of [batch, out…, channels].
Ints withTaps(Shape shape, int64_t taps) {
  Ints result(shape.begin(), shape.end());
  result.insert(result.end() - 1, taps);
  return result;
}

/// [batch, out…, taps, channels] of [batch, …, channels]: one strided slice per tap of the kernel.
Val tapByTap(NodeContext &c, const Val &x, const Window &g) {
  Vals taps;
  Ints at(g.kernel.size(), 0);
  for (int64_t t = 0; t < g.taps && !c.e.failed(); ++t, advance(at, g)) {
    Val tap = tapOf(c, x, g, at, 1);
    taps.push_back(tap ? c.e.reshape(tap, withTaps(tap.shape(), 1)) : Val());
  }
  return c.e.concat(taps, int64_t(g.kernel.size()) + 1);
}

/// The same dimension by dimension, the last first: the sum of the kernel's sizes where tap by tap takes their product, for
/// intermediate columns in memory.
Val dimensionByDimension(NodeContext &c, const Val &x, const Window &g) {
  int64_t n = int64_t(g.kernel.size());
  Ints shape = withTaps(x.shape(), 1);
  Val all = c.e.reshape(x, shape);
  for (int64_t i = n - 1; i >= 0 && all; --i) {
    Ints from(shape.size(), 0), step(shape.size(), 1);
    shape[i + 1] = g.out[i];
    step[i + 1] = g.out[i] == 1 ? 1 : g.stride[i];
    Vals taps;
    for (int64_t t = 0; t < g.kernel[i]; ++t, from[i + 1] += g.dilation[i]) taps.push_back(c.e.slice(all, from, shape, step));
    all = c.e.concat(taps, n + 1);
    shape[n + 1] *= g.kernel[i];
  }
  return all;
}

/// The columns [batch, out…, taps, channels] of windows that overlap: channels are side by side, as a convolution before has made them.
Val columns(NodeContext &c, Val x, const Window &g) {
  Ints low{0}, high{0};
  low.append(g.before), low.push_back(0);
  high.append(g.after), high.push_back(0);
  x = c.e.pad(c.e.transpose(x, channelsLast(x.rank())), 0, low, high);
  if (!x) return {};
  return g.taps > kMostTapsAtOnce ? dimensionByDimension(c, x, g) : tapByTap(c, x, g);
}

/// Each channel by its own kernel: no sum over channels, and so no product of matrices.
Val depthwise(NodeContext &c, const Val &x, const Val &w, const Window &g) {
  int64_t n = int64_t(g.kernel.size());
  Ints turned, shape{x.dim(1)}, low, high, before{0}, after{0};
  for (int64_t i = 0; i < n; ++i) {
    turned.push_back(1 + i);
    int64_t reach = (g.kernel[i] - 1) * g.dilation[i]; // zeros beyond it are met by no window that meets the input
    low.push_back(std::min(g.before[i], reach));
    high.push_back(std::min(g.after[i], reach));
    before.push_back(g.before[i] - low[i]);
    after.push_back(g.after[i] - high[i]);
  }
  turned.push_back(0), before.push_back(0), after.push_back(0);
  shape.append(g.kernel);
  Val places = c.e.pad(c.e.transpose(x, channelsLast(x.rank())), 0, before, after);
  return c.e.depthwise(places, c.e.transpose(c.e.reshape(w, shape), turned), low, high, g.stride, g.dilation);
}

/// Whether y gets a bias. Where a convolution in three dimensions has none PyTorch's newer exporter writes zeros [filters, 2].
bool hasBias(NodeContext &c) {
  if (!c.has(2)) return false;
  if (c.inputs[2].rank() == 1) return true;
  auto known = c.importer.known(c.inputs[2], c.e);
  if (!known || llvm::any_of(known->bytes, [](char byte) { return byte != 0; }))
    c.fail("its bias of shape " + text(c.inputs[2].shape()) + " is no vector");
  return false;
}

/// Columns by weights: [batch · places, filters]. Of windows that overlap, the taps of a column come before its channels: the weight's,
/// too, then.
Val product(NodeContext &c, Val rows, Val w, const Window &g, int64_t groups, bool overlap) {
  if (!rows || !w) return {};
  int64_t places = rows.dim(0) * g.places, filters = w.dim(0) / groups, channels = w.dim(1), depth = channels * g.taps;
  if (overlap) w = c.e.transpose(c.e.reshape(w, {groups * filters, channels, g.taps}), {0, 2, 1});
  if (groups == 1) return c.e.matmul(c.e.reshape(rows, {places, depth}), c.e.reshape(w, {filters, depth}), false, true);
  rows = overlap ? c.e.transpose(c.e.reshape(rows, {places, g.taps, groups, channels}), {2, 0, 1, 3})
                 : c.e.transpose(c.e.reshape(rows, {places, groups, depth}), {1, 0, 2});
  Val y = c.e.matmul(c.e.reshape(rows, {groups, places, depth}), c.e.reshape(w, {groups, filters, depth}), false, true);
  return c.e.reshape(c.e.transpose(y, {1, 0, 2}), {places, groups * filters});
}

/// x [batch, channels, …] by w [filters, channels / groups, …].
Val convolve(NodeContext &c, const Val &x, const Val &w, const Window &g, int64_t groups) {
  bool overlap = false;
  for (size_t i = 0; i < g.kernel.size(); ++i) overlap |= g.stride[i] < g.kernel[i] || g.dilation[i] != 1 || g.before[i] || g.after[i];
  if (overlap && g.taps > kMostTaps)
    return c.e.fail("overlapping windows of " + llvm::Twine(g.taps) + " elements are not supported (at most " + llvm::Twine(kMostTaps) +
                    ")");
  int64_t batch = x.dim(0), filters = w.dim(0);
  bool single = overlap && x.dim(1) == groups && filters == groups && groups > 1 && g.taps <= kMostTapsAtOnce;
  Val y = single    ? c.e.reshape(depthwise(c, x, w, g), {batch * g.places, filters})
          : overlap ? product(c, columns(c, x, g), w, g, groups, true)
                    : product(c, patches(c, x, g), w, g, groups, false);
  if (hasBias(c)) y = c.e.add(y, c.inputs[2]);
  Ints shape{batch};
  shape.append(g.out);
  shape.push_back(filters);
  Ints perm{0, int64_t(shape.size()) - 1};
  for (size_t i = 1; i + 1 < shape.size(); ++i) perm.push_back(int64_t(i));
  return c.e.transpose(c.e.reshape(y, shape), perm);
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
  return {convolve(c, x, w, g, groups)};
}

/// What a convolution does to gradients: the input's elements stand apart by the stride, and the kernel goes over them reversed.
Vals convTranspose(NodeContext &c) {
  if (!c.only({"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "pads", "strides"})) return {};
  Val x = c.in(0), w = c.in(1);
  if (!x || !w) return {};
  int64_t groups = c.integer("group", 1), n = x.rank() - 2;
  if (n < 1 || w.rank() != x.rank() || groups <= 0 || w.dim(0) != x.dim(1) || x.dim(1) % groups)
    return c.fail("input, weight and group do not fit together");
  if (c.string("auto_pad", "NOTSET") != "NOTSET") return c.fail("only explicit pads are supported");
  Ints stride = c.ints("strides").value_or(Ints(n, 1)), pads = c.ints("pads").value_or(Ints(2 * n, 0));
  Ints dilation = c.ints("dilations").value_or(Ints(n, 1)), more = c.ints("output_padding").value_or(Ints(n, 0));
  Window g;
  g.kernel.assign(w.shape().begin() + 2, w.shape().end());
  if (auto shape = c.ints("kernel_shape"); shape && *shape != g.kernel) return c.fail("kernel_shape is not the weight's");
  if (int64_t(stride.size()) != n || int64_t(pads.size()) != 2 * n || int64_t(dilation.size()) != n || int64_t(more.size()) != n)
    return c.fail("strides, dilations or pads do not fit the input's rank");
  constexpr int64_t most = 1 << 20;
  for (int64_t i = 0; i < n; ++i) {
    if (std::min({stride[i], dilation[i], g.kernel[i]}) <= 0 || std::max({stride[i], dilation[i], g.kernel[i], x.dim(i + 2)}) > most ||
        std::min({pads[i], pads[i + n], more[i]}) < 0 || std::max({pads[i], pads[i + n], more[i]}) > most)
      return c.fail("strides, dilations, pads and kernel are out of range");
    int64_t reach = (g.kernel[i] - 1) * dilation[i];
    g.before.push_back(reach - pads[i]);
    g.after.push_back(reach - pads[i + n] + more[i]);
    g.out.push_back((x.dim(i + 2) - 1) * stride[i] + 1 + g.before[i] + g.after[i] - reach);
    if (g.before[i] < 0 || g.after[i] < 0 || g.out[i] <= 0) return c.fail("pads beyond the kernel's reach are not supported");
    g.taps *= g.kernel[i];
    g.places *= g.out[i];
  }
  g.stride = Ints(n, 1);
  g.dilation = dilation;
  // [groups · channels, filters, …] becomes [groups · filters, channels, …], the kernel reversed.
  int64_t channels = x.dim(1) / groups, filters = w.dim(1);
  Ints from{0, 0}, size(w.shape().begin(), w.shape().end()), step{1, 1}, split{groups, channels, filters}, perm{0, 2, 1};
  for (int64_t i = 0; i < n; ++i) {
    from.push_back(g.kernel[i] - 1);
    step.push_back(-1);
    split.push_back(g.kernel[i]);
    perm.push_back(3 + i);
  }
  Ints turned{groups * filters, channels};
  turned.append(g.kernel);
  w = c.e.reshape(c.e.transpose(c.e.reshape(c.e.slice(w, from, size, step), split), perm), turned);
  for (int64_t i = 0; i < n; ++i) x = dilate(c, x, i + 2, stride[i]);
  return {x && w ? convolve(c, x, w, g, groups) : Val()};
}

} // namespace

void registerConvolution(Registry &r) {
  r["Conv"] = {conv};
  r["ConvTranspose"] = {convTranspose};
}

} // namespace zero::onnx

//===- col2im.cpp - columns of windows, summed into the image that they are of ---------------------===//
// What a convolution's columns are cut out of an image by, the other way round. It is done dimension by dimension: the
// sum of the kernel's sizes in operations where window by window takes their product.
#include "compiler/onnx/ops/window.h"

namespace zero::onnx {
namespace {

/// One dimension of the image.
struct Dimension {
  int64_t size, kernel, stride, dilation, before, after;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  int64_t windows() const { return (size + before + after - reach()) / stride + 1; }
};

/// x with elements `tap`, `window` along dimensions `taps` and `taps` + `apart` summed into those of the image, in place of the windows.
Val joined(NodeContext &c, const Val &x, int64_t taps, int64_t apart, const Dimension &d) {
  int64_t windows = taps + apart, padded = d.size + d.before + d.after, covered = (d.windows() - 1) * d.stride + d.reach();
  Val sum;
  for (int64_t tap = 0; tap < d.kernel; ++tap) {
    Val one = dilate(c, c.e.sliceDim(x, taps, tap, tap + 1), windows, d.stride);
    if (!one) return {};
    Ints low(one.rank(), 0), high(one.rank(), 0);
    low[windows] = tap * d.dilation;
    high[windows] = covered - low[windows] - one.dim(windows) + (padded - covered);
    one = c.e.pad(one, 0, low, high);
    sum = tap ? c.e.add(sum, one) : one;
  }
  return c.e.sliceDim(sum, windows, d.before, d.before + d.size);
}

Vals col2im(NodeContext &c) {
  if (!c.only({"dilations", "pads", "strides"})) return {};
  Val x = c.in(0);
  auto image = c.knownInts(1), block = c.knownInts(2);
  if (!x || !image || !block) return {};
  auto n = int64_t(image->size());
  Ints stride = c.ints("strides").value_or(Ints(n, 1)), dilation = c.ints("dilations").value_or(Ints(n, 1)),
       pads = c.ints("pads").value_or(Ints(2 * n, 0));
  if (x.rank() != 3 || n == 0 || int64_t(block->size()) != n || int64_t(stride.size()) != n || int64_t(dilation.size()) != n ||
      int64_t(pads.size()) != 2 * n)
    return c.fail("the input, image_shape, block_shape, strides, dilations and pads do not fit together");
  llvm::SmallVector<Dimension> dimensions;
  int64_t taps = 1, windows = 1;
  for (int64_t i = 0; i < n; ++i) {
    Dimension d{(*image)[i], (*block)[i], stride[i], dilation[i], pads[i], pads[i + n]};
    if (std::min({d.size, d.kernel, d.stride, d.dilation}) <= 0 || std::min(d.before, d.after) < 0 ||
        std::max({d.size, d.kernel, d.stride, d.dilation, d.before, d.after}) > 1 << 20 || d.kernel > kMostTaps ||
        d.reach() > d.size + d.before + d.after)
      return c.fail("image_shape, block_shape, strides, dilations and pads are out of range");
    taps *= d.kernel, windows *= d.windows();
    if (taps > x.dim(1) || windows > x.dim(2)) break; // said below
    dimensions.push_back(d);
  }
  if (int64_t(dimensions.size()) != n || x.dim(1) % taps || x.dim(2) != windows)
    return c.fail("the input has " + llvm::Twine(x.dim(1)) + " rows of " + llvm::Twine(x.dim(2)) +
                  " windows, which image_shape and block_shape do not make");
  int64_t channels = x.dim(1) / taps;
  Ints shape{x.dim(0), channels};
  for (const Dimension &d : dimensions) shape.push_back(d.kernel);
  for (const Dimension &d : dimensions) shape.push_back(d.windows());
  Val y = c.e.reshape(x, shape);
  for (int64_t i = 0; i < n && y; ++i) y = joined(c, y, 2 + i, n, dimensions[i]);
  Ints whole{x.dim(0), channels};
  whole.append(*image);
  return {c.e.reshape(y, whole)};
}

} // namespace

void registerColumns(Registry &r) { r["Col2Im"] = {col2im, 18}; }

} // namespace zero::onnx

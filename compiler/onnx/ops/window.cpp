//===- window.cpp - where the windows of convolutions and poolings lie ----------------------------===//
#include "compiler/onnx/ops/window.h"
#include "llvm/Support/MathExtras.h"

namespace zero::onnx {

bool window(NodeContext &c, const Val &x, Window &g, bool cut) {
  int64_t n = x.rank() - 2;
  g.stride = c.ints("strides").value_or(Ints(n, 1));
  g.dilation = c.ints("dilations").value_or(Ints(n, 1));
  Ints pads = c.ints("pads").value_or(Ints(2 * n, 0));
  std::string padding = c.string("auto_pad", "NOTSET");
  if (int64_t(g.kernel.size()) != n || int64_t(g.stride.size()) != n || int64_t(g.dilation.size()) != n || int64_t(pads.size()) != 2 * n)
    return c.e.fail("kernel, strides, dilations or pads do not fit the input's rank"), false;
  for (int64_t i = 0; i < n; ++i) {
    if (g.stride[i] <= 0 || g.dilation[i] <= 0 || g.kernel[i] <= 0 || std::max({g.stride[i], g.dilation[i], g.kernel[i]}) > 1 << 20)
      return c.e.fail("strides, dilations and kernel must be positive"), false;
    int64_t reach = (g.kernel[i] - 1) * g.dilation[i] + 1, size = x.dim(i + 2), before = pads[i], after = pads[i + n];
    if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      int64_t total = std::max<int64_t>(0, ((size + g.stride[i] - 1) / g.stride[i] - 1) * g.stride[i] + reach - size);
      before = padding == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    } else if (padding == "VALID") {
      before = after = 0;
    } else if (padding != "NOTSET") {
      return c.e.fail("auto_pad='" + padding + "' is not known"), false;
    }
    if (before < 0 || after < 0 || std::max(before, after) > 1 << 20) return c.e.fail("pads are out of range"), false;
    int64_t room = size + before + after, beyond = 0;
    if (cut) {
      int64_t windows = llvm::divideFloorSigned(room - reach + g.stride[i] - 1, g.stride[i]) + 1;
      if ((windows - 1) * g.stride[i] >= size + before) --windows;
      if (windows == 1 && room < reach) {
        g.kernel[i] = (room - 1) / g.dilation[i] + 1;
        reach = (g.kernel[i] - 1) * g.dilation[i] + 1;
      }
      beyond = windows > 0 ? std::max<int64_t>(0, (windows - 1) * g.stride[i] + reach - room) : 0;
    }
    if (room + beyond < reach)
      return c.e.fail("the window of " + llvm::Twine(reach) + " does not fit a dimension of size " + llvm::Twine(size)), false;
    g.before.push_back(before);
    g.after.push_back(after + beyond);
    g.beyond.push_back(beyond);
    g.out.push_back((room + beyond - reach) / g.stride[i] + 1);
    g.taps *= g.kernel[i];
    g.places *= g.out.back();
  }
  return true;
}

Val tapOf(NodeContext &c, const Val &padded, const Window &g, Shape at, size_t first) {
  Ints from(padded.rank(), 0), size(padded.shape().begin(), padded.shape().end()), step(padded.rank(), 1);
  for (size_t i = 0; i < g.kernel.size(); ++i) {
    from[first + i] = at[i] * g.dilation[i];
    size[first + i] = g.out[i];
    step[first + i] = g.out[i] == 1 ? 1 : g.stride[i];
  }
  return c.e.slice(padded, from, size, step);
}

Val dilate(NodeContext &c, const Val &x, int64_t dim, int64_t stride) {
  if (!x || stride == 1) return x;
  int64_t n = x.dim(dim);
  Ints apart(x.shape().begin(), x.shape().end()), joined = apart, none(x.rank() + 1, 0), after = none;
  apart.insert(apart.begin() + dim + 1, 1);
  after[dim + 1] = stride - 1;
  joined[dim] = n * stride;
  return c.e.sliceDim(c.e.reshape(c.e.pad(c.e.reshape(x, apart), 0, none, after), joined), dim, 0, (n - 1) * stride + 1);
}

void advance(Ints &at, const Window &g) {
  for (int64_t i = int64_t(at.size()) - 1; i >= 0 && ++at[i] == g.kernel[i]; --i) at[i] = 0;
}

} // namespace zero::onnx

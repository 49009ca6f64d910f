//===- depthwise.cpp - convolutions of each channel by itself -------------------------------------===//
// Taps are multiplied and added where they are, with the channels of a place side by side, so that a tap of all of them is one run of
// memory. The gradient of the input is such a convolution again, of the result's gradient by the reversed kernel; as the gradient of
// slices it would be a sum of as many tensors filled up with zeros as there are taps.
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {
namespace {

/// Calls `body` with each tap, in the order of the kernel's elements.
void forEachTap(ArrayRef<int64_t> kernel, llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  SmallVector<int64_t> at(kernel.size(), 0);
  for (int64_t taps = ShapedType::getNumElements(kernel); taps > 0; --taps) {
    body(at);
    for (int64_t i = int64_t(at.size()) - 1; i >= 0 && ++at[i] == kernel[i]; --i) at[i] = 0;
  }
}

/// The input with the zeros around it.
Value padded(DepthwiseOp op, Build &b) {
  SmallVector<int64_t> low{0}, high{0}, none(op.getLow().size() + 2, 0);
  llvm::append_range(low, op.getLow());
  llvm::append_range(high, op.getHigh());
  low.push_back(0), high.push_back(0);
  return b.pad(op.getInput(), low, high, none);
}

/// The elements of the padded input that one tap is multiplied by: [batch, out…, channels].
Value tapOf(ArrayRef<int64_t> tap, DepthwiseOp op, Build &b, Value padded) {
  auto out = typeOf(op.getResult()).getShape();
  SmallVector<int64_t> from(out.size(), 0), step(out.size(), 1);
  for (auto [i, at] : llvm::enumerate(tap)) {
    from[i + 1] = at * op.getDilations()[i];
    step[i + 1] = out[i + 1] == 1 ? 1 : op.getStrides()[i];
  }
  return b.slice(padded, from, out, step);
}

} // namespace

LogicalResult DepthwiseOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput()), kernel = typeOf(a.getKernel());
  size_t n = kernel.getRank() - 1;
  if (kernel.getRank() < 2 || in.getRank() != kernel.getRank() + 1 || in.getShape().back() != kernel.getShape().back())
    return reject(loc, "nn.depthwise: ", in, " and ", kernel, " are no places and taps of equal channels");
  if (a.getLow().size() != n || a.getHigh().size() != n || a.getStrides().size() != n || a.getDilations().size() != n)
    return reject(loc, "nn.depthwise: low, high, strides and dilations need one entry per dimension of the window");
  SmallVector<int64_t> shape{in.getDimSize(0)};
  for (size_t i = 0; i < n; ++i) {
    int64_t low = a.getLow()[i], high = a.getHigh()[i], stride = a.getStrides()[i], dilation = a.getDilations()[i];
    int64_t reach = (kernel.getDimSize(i) - 1) * dilation, free = in.getDimSize(i + 1) + low + high - reach - 1;
    if (kernel.getDimSize(i) < 1 || stride < 1 || dilation < 1 || free < 0 || std::min(low, high) < 0 || std::max(low, high) > reach)
      return reject(loc, "nn.depthwise: dimension ", i, " of the window does not fit ", in);
    shape.push_back(free / stride + 1);
  }
  shape.push_back(in.getShape().back());
  out.push_back(with(in, shape));
  return success();
}

Composed DepthwiseOp::decompose(Build &b) {
  auto out = typeOf(getResult()).getShape(), window = typeOf(getKernel()).getShape().drop_back();
  int64_t channels = out.back(), t = 0;
  Value all = padded(*this, b), kernel = b.reshape(getKernel(), {ShapedType::getNumElements(window), channels}), sum;
  forEachTap(window, [&](ArrayRef<int64_t> tap) {
    Value weight = b.reshape(b.slice(kernel, {t++, 0}, {1, channels}, {1, 1}), {channels});
    Value term = b.mul(tapOf(tap, *this, b, all), b.columns(weight, out));
    sum = sum ? b.add(sum, term) : term;
  });
  return {sum};
}

/// With d apart by the strides, dx[i] = sum over taps t of d[i + low - t dilation] kernel[t], a convolution of d by the reversed kernel;
/// and dkernel[t] is the sum over places of d times the elements that t is multiplied by.
LogicalResult DepthwiseOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &gradients) {
  Build b{builder, getLoc()};
  auto in = typeOf(getInput()).getShape(), kernel = typeOf(getKernel()).getShape(), out = typeOf(getResult()).getShape();
  size_t n = kernel.size() - 1;
  SmallVector<int64_t> low, high, none(n + 2, 0), apart(n + 2, 0), tail(n + 2, 0), last(n + 1, 0), backwards(n + 1, -1), ones(n, 1);
  last[n] = 0, backwards[n] = 1;
  for (size_t i = 0; i < n; ++i) {
    int64_t reach = (kernel[i] - 1) * getDilations()[i];
    low.push_back(reach - getLow()[i]);
    high.push_back(reach - getHigh()[i]);
    apart[i + 1] = getStrides()[i] - 1;
    tail[i + 1] = (in[i + 1] + getLow()[i] + getHigh()[i] - reach - 1) % getStrides()[i]; // places that no window reaches
    last[i] = kernel[i] - 1;
  }
  Value spread = b.pad(d[0], none, tail, apart), reversed = b.slice(getKernel(), last, kernel, backwards);
  gradients[0] = b.b.create<DepthwiseOp>(b.loc, spread, reversed, low, high, ones, getDilations());

  SmallVector<Value> sums;
  Value all = padded(*this, b);
  forEachTap(kernel.drop_back(), [&](ArrayRef<int64_t> tap) {
    sums.push_back(b.reshape(b.sumRows(b.mul(tapOf(tap, *this, b, all), d[0])), {1, kernel.back()}));
  });
  gradients[1] = b.reshape(b.b.create<ConcatOp>(b.loc, sums, 0), kernel);
  return success();
}

LogicalResult DepthwiseOp::evaluate(Operands in, Results results) {
  auto shape = in[0]->shape(), kernel = in[1]->shape(), out = results[0].shape();
  size_t n = kernel.size() - 1;
  int64_t channels = kernel.back();
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    auto x = in[0]->data<T>(), w = in[1]->data<T>();
    auto y = results[0].data<T>();
    std::vector<double> sum(channels);
    SmallVector<int64_t> place(n + 1, 0); // batch, out…
    for (size_t row = 0; channels && row < y.size() / size_t(channels); ++row) {
      std::fill(sum.begin(), sum.end(), 0);
      size_t t = 0;
      forEachTap(kernel.drop_back(), [&](ArrayRef<int64_t> tap) {
        int64_t from = place[0];
        bool inside = true;
        for (size_t i = 0; i < n; ++i) {
          int64_t at = place[i + 1] * getStrides()[i] + tap[i] * getDilations()[i] - getLow()[i];
          inside &= at >= 0 && at < shape[i + 1];
          from = from * shape[i + 1] + at;
        }
        for (int64_t c = 0; inside && c < channels; ++c) sum[c] += double(x[from * channels + c]) * w[t * channels + c];
        ++t;
      });
      for (int64_t c = 0; c < channels; ++c) y[row * channels + c] = T(sum[c]);
      for (size_t i = n + 1; i-- > 0 && ++place[i] == out[i];) place[i] = 0;
    }
    return success();
  });
}

} // namespace zero::nn

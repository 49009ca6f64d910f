//===- grid_sample.cpp - images sampled at coordinates that the model computes ---------------------===//
// Deformable attention is made of it. A sample is interpolated from the elements around it (its taps); each is a lookup of all channels,
// scaled by a weight, so the image has the gradient of a lookup and the coordinates that of the weights. Coordinates, padding and cubic
// weights are PyTorch's, from which ONNX's reference evaluator differs: it pads those of a cubic sample before its taps.
#include "compiler/onnx/ops/arithmetic.h"

namespace zero::onnx {
namespace {

using P = nn::Predicate;

Val floor(NodeContext &c, const Val &x) { return c.e.unary<nn::FloorOp>(x); }
Val add(NodeContext &c, const Val &x, double value) { return c.e.add(x, like(c, value, x)); }
Val mul(NodeContext &c, const Val &x, double value) { return c.e.mul(x, like(c, value, x)); }

/// One whole coordinate beside a place, 0 where that lies outside, and what it counts there.
struct Tap {
  Val index, weight;
};

/// How one dimension of `length` is read at `place`, which spans it from -1 to 1.
struct Reading {
  NodeContext &c;
  std::string mode, padding;
  bool alignCorners;
  int64_t length;

  Val clamped(const Val &x) const { return c.e.binary<nn::MinOp>(c.e.binary<nn::MaxOp>(x, like(c, 0, x)), like(c, double(length - 1), x)); }

  /// Back and forth between the borders, which are centres of elements or, without `alignCorners`, their outer edges.
  Val reflected(const Val &x) const {
    double low = alignCorners ? 0 : -0.5, span = double(alignCorners ? length - 1 : length);
    if (span == 0) return like(c, 0, x);
    Val away = c.e.unary<nn::AbsOp>(add(c, x, -low));
    Val turns = floor(c, mul(c, away, 1 / span)), extra = c.e.sub(away, mul(c, turns, span));
    Val odd = c.e.compare(P::ne, mul(c, floor(c, mul(c, turns, 0.5)), 2), turns);
    Val back = c.e.sub(like(c, span + low, x), extra);
    return c.e.select(odd, back, add(c, extra, low));
  }

  /// A coordinate with what the padding makes of those outside. Zeros stay where they are.
  Val padded(const Val &x) const {
    if (padding == "zeros") return x;
    return clamped(padding == "reflection" ? reflected(x) : x);
  }

  /// Outside, and where `at` is no number, element 0 with no weight.
  Tap tap(const Val &at, const Val &weight) const {
    Val inside = c.e.binary<nn::AndOp>(c.e.compare(P::ge, at, like(c, 0, at)), c.e.compare(P::le, at, like(c, double(length - 1), at)));
    Val index = c.e.convert(c.e.select(inside, at, like(c, 0, at)), c.e.i64());
    return {index, c.e.select(inside, weight, like(c, 0, at))};
  }

  /// Keys' cubic convolution with a = -0.75, as a function of the distance.
  Val cubic(const Val &distance, bool near) const {
    constexpr double a = -0.75;
    if (near) return add(c, c.e.mul(c.e.mul(add(c, mul(c, distance, a + 2), -(a + 3)), distance), distance), 1);
    return add(c, c.e.mul(add(c, c.e.mul(add(c, mul(c, distance, a), -5 * a), distance), 8 * a), distance), -4 * a);
  }

  llvm::SmallVector<Tap, 4> taps(const Val &place) const {
    double scale = double(alignCorners ? length - 1 : length) / 2;
    Val x = add(c, mul(c, place, scale), double(length - 1) / 2);
    if (mode == "nearest") return {tap(rounded(c, padded(x)), like(c, 1, x))};
    if (mode == "linear") {
      x = padded(x);
      Val low = floor(c, x), part = c.e.sub(x, low);
      return {tap(low, c.e.sub(like(c, 1, x), part)), tap(add(c, low, 1), part)};
    }
    Val low = floor(c, x), part = c.e.sub(x, low);
    auto at = [&](double step, const Val &distance) { return tap(padded(add(c, low, step)), cubic(distance, step == 0 || step == 1)); };
    Val rest = c.e.sub(like(c, 1, x), part);
    return {at(-1, add(c, part, 1)), at(0, part), at(1, rest), at(2, add(c, rest, 1))};
  }
};

/// Images as rows of channels, one for each element: [batch * elements, channels].
Val rows(NodeContext &c, const Val &x, int64_t elements) {
  Ints perm = channelsLast(x.rank());
  return c.e.reshape(c.e.transpose(x, perm), {x.dim(0) * elements, x.dim(1)});
}

Vals gridSample(NodeContext &c) {
  Val x = c.in(0), grid = c.in(1);
  if (!x || !grid) return {};
  int64_t n = x.rank() - 2;
  if (n < 1 || grid.rank() != n + 2 || grid.dim(n + 1) != n || grid.dim(0) != x.dim(0))
    return c.fail("an image of shape " + text(x.shape()) + " and a grid of shape " + text(grid.shape()) + " do not fit together");
  if (!x.isFloat() || !grid.isFloat()) return c.fail("it is supported for floats only");
  if (n > 3) return c.fail("it reads images of " + llvm::Twine(n) + " dimensions; up to three are supported");
  auto elements = elementsOf(x.shape().drop_front(2)), places = elementsOf(grid.shape().drop_front(1).drop_back(1));
  if (!elements || !places || *elements < 1 || *places < 1 || x.dim(0) < 1 || x.dim(1) < 1) return c.fail("there is nothing to read");

  std::string mode = c.string("mode", "linear"), padding = c.string("padding_mode", "zeros");
  if (mode == "bilinear") mode = "linear"; // opset 16
  if (mode == "bicubic") mode = "cubic";
  if (mode != "linear" && mode != "nearest" && mode != "cubic") return c.fail("mode='" + mode + "' is not known");
  if (padding != "zeros" && padding != "border" && padding != "reflection") return c.fail("padding_mode='" + padding + "' is not known");

  // Every combination of the dimensions' taps. The last coordinate of a place is that of the first dimension.
  llvm::SmallVector<Tap> all{{}};
  int64_t stride = *elements;
  for (int64_t d = 0; d < n; ++d) {
    int64_t length = x.dim(2 + d);
    stride /= length;
    Reading reading{c, mode, padding, c.integer("align_corners", 0) != 0, length};
    Val place = c.e.reshape(c.e.sliceDim(grid, n + 1, n - 1 - d, n - d), {x.dim(0), *places});
    llvm::SmallVector<Tap> longer;
    for (const Tap &t : reading.taps(c.e.convert(place, c.e.f32()))) {
      Val step = mul(c, t.index, double(stride));
      for (const Tap &before : all)
        longer.push_back(d ? Tap{c.e.add(before.index, step), c.e.mul(before.weight, t.weight)} : Tap{step, t.weight});
    }
    all = std::move(longer);
  }

  // All taps of a place side by side: one lookup, and one sum.
  llvm::SmallVector<Val> indices, weights;
  for (const Tap &t : all) {
    indices.push_back(c.e.reshape(t.index, {x.dim(0), *places, 1}));
    weights.push_back(c.e.reshape(t.weight, {x.dim(0), *places, 1, 1}));
  }
  Val image = mul(c, c.e.iota({x.dim(0), 1, 1}, 0, c.e.i64()), double(*elements));
  Val found = c.e.gather(rows(c, x, *elements), c.e.add(c.e.concat(indices, 2), image));
  Val sum = c.e.reduce(nn::ReductionKind::sum, c.e.mul(found, c.e.convert(c.e.concat(weights, 2), x.element())), {2});
  Ints shape{x.dim(0)}, channelsFirst{0, n + 1};
  for (int64_t i = 1; i <= n; ++i) shape.push_back(grid.dim(i)), channelsFirst.push_back(i);
  shape.push_back(x.dim(1));
  return {c.e.transpose(c.e.reshape(sum, shape), channelsFirst)};
}

} // namespace

void registerGridSample(Registry &r) { r["GridSample"] = {gridSample, 16}; }

} // namespace zero::onnx

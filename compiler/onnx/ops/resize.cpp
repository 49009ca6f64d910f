//===- resize.cpp - interpolation as products with known matrices ---------------------------------===//
// Models resize tables of positions and features. Every mode is linear in the elements and works dimension by dimension, so one product
// with a small matrix per resized dimension says it all, and has a gradient.
#include "compiler/onnx/importer.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace zero::onnx {
namespace {

/// How one dimension is resampled.
struct Sampling {
  std::string mode, coordinates, rounding;
  bool antialias, excludeOutside;
  double cubic;

  /// Where output element i lies among `from` inputs; nothing for a rule that is not known.
  template <typename Real> std::optional<double> source(int64_t i, int64_t from, int64_t to, Real scale) const {
    Real x = Real(i), half = Real(0.5);
    if (coordinates == "half_pixel") return (x + half) / scale - half;
    if (coordinates == "pytorch_half_pixel") return to > 1 ? (x + half) / scale - half : Real(0);
    if (coordinates == "align_corners") return to == 1 ? Real(0) : x * Real(from - 1) / Real(to - 1); // in onnxruntime and PyTorch
    if (coordinates == "asymmetric") return x / scale;
    if (coordinates == "tf_half_pixel_for_nn") return (x + half) / scale;
    if (coordinates == "half_pixel_symmetric") {
      Real whole = scale * Real(from), offset = Real(from) / 2 * (1 - Real(to) / whole);
      return offset + (x + half) / scale - half;
    }
    return std::nullopt;
  }

  /// Of a place that is cut at whole numbers single precision decides on which side of one it lies, as it does in onnxruntime and PyTorch.
  std::optional<double> place(int64_t i, int64_t from, int64_t to, double scale) const {
    bool cut = mode == "nearest" && (rounding == "floor" || rounding == "ceil");
    return cut ? source<float>(i, from, to, float(scale)) : source<double>(i, from, to, scale);
  }

  int64_t nearest(double x) const {
    if (rounding == "floor") return int64_t(std::floor(x));
    if (rounding == "ceil") return int64_t(std::ceil(x));
    return int64_t(rounding == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5));
  }

  double weight(double distance) const {
    double d = std::fabs(distance), a = cubic;
    if (mode == "linear") return std::max(0.0, 1 - d);
    if (d >= 2) return 0;
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }

  /// The matrix [to, from]; nothing for a rule that is not known.
  std::optional<nn::Tensor> matrix(int64_t from, int64_t to, double scale, mlir::Type element) const {
    nn::Tensor m(mlir::RankedTensorType::get({to, from}, element));
    for (int64_t i = 0; i < m.size(); ++i) m.set(i, 0);
    double stretch = antialias ? std::min(1.0, scale) : 1; // where it shrinks, every input counts
    int64_t reach = int64_t(std::ceil((mode == "cubic" ? 2 : 1) / stretch));
    for (int64_t i = 0; i < to; ++i) {
      auto x = place(i, from, to, scale);
      if (!x) return std::nullopt;
      auto add = [&](int64_t at, double w) {
        int64_t j = i * from + std::clamp<int64_t>(at, 0, from - 1);
        m.set(j, m.at(j) + w);
      };
      if (mode == "nearest") {
        add(nearest(*x), 1);
        continue;
      }
      int64_t floor = int64_t(std::floor(*x));
      double sum = 0;
      auto eachTap = [&](auto visit) {
        for (int64_t at = floor - reach + 1; at <= floor + reach; ++at)
          if (!excludeOutside || (at >= 0 && at < from)) visit(at, weight((double(at) - *x) * stretch));
      };
      eachTap([&](int64_t, double w) { sum += w; });
      if (sum != 0) eachTap([&](int64_t at, double w) { add(at, w / sum); });
    }
    return m;
  }
};

/// Sizes after and before, as a factor, of every dimension; false after a report.
bool factors(NodeContext &c, const Val &x, Ints &to, llvm::SmallVectorImpl<double> &scale) {
  Ints axes = c.ints("axes").value_or(upTo(x.rank()));
  to.assign(x.shape().begin(), x.shape().end());
  scale.assign(x.rank(), 1);
  bool bySize = c.has(3) && c.inputs[3].type().getNumElements() > 0;
  auto given = c.known(bySize ? 3 : 2);
  if (!given) return false;
  if (given->size() != int64_t(axes.size()))
    return c.e.fail("it has " + llvm::Twine(given->size()) + " sizes or scales for " + llvm::Twine(axes.size()) + " dimensions"), false;
  if (bySize && c.string("keep_aspect_ratio_policy", "stretch") != "stretch")
    return c.e.fail("keep_aspect_ratio_policy='" + c.string("keep_aspect_ratio_policy", "") + "' is not supported"), false;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    int64_t d = c.dimension(axis, x.rank());
    if (d < 0) return false;
    double v = given->at(int64_t(i));
    scale[d] = bySize ? v / double(x.dim(d)) : v;
    // In single precision, as in onnxruntime: there 1.3 times 10 is 13, and in double less.
    double size = bySize ? v : std::floor(float(v) * float(x.dim(d)));
    if (!(size >= 1 && size <= 1 << 20)) // also where it is no number
      return c.e.fail("dimension " + llvm::Twine(d) + " cannot become " + llvm::formatv("{0:f0}", size).str() + " elements"), false;
    to[d] = int64_t(size);
  }
  return true;
}

Vals resize(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  if (!x.isFloat()) return c.fail("only floating-point tensors can be resized");
  Sampling s{c.string("mode", "nearest"),
             c.string("coordinate_transformation_mode", "half_pixel"),
             c.string("nearest_mode", "round_prefer_floor"),
             c.integer("antialias", 0) != 0,
             c.integer("exclude_outside", 0) != 0,
             c.real("cubic_coeff_a", -0.75)};
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") return c.fail("mode='" + s.mode + "' is not known");
  Ints to;
  llvm::SmallVector<double> scale;
  if (!factors(c, x, to, scale)) return {};
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (to[d] == x.dim(d) && scale[d] == 1) continue;
    if (!c.e.affords({to[d], x.dim(d)}, x.element())) return {};
    auto m = s.matrix(x.dim(d), to[d], scale[d], x.element());
    if (!m) return c.fail("coordinate_transformation_mode='" + s.coordinates + "' is not supported");
    Ints perm = upTo(x.rank());
    std::swap(perm[d], perm.back());
    Val turned = c.e.transpose(x, perm);
    if (!turned) return {};
    Ints shape(turned.shape().begin(), turned.shape().end());
    Val y = c.e.matmul(c.e.reshape(turned, {turned.type().getNumElements() / x.dim(d), x.dim(d)}), Val(std::move(*m)), false, true);
    shape.back() = to[d];
    x = c.e.transpose(c.e.reshape(y, shape), perm);
    if (!x) return {};
  }
  return {x};
}

} // namespace

void registerResize(Registry &r) { r["Resize"] = {resize, 11}; }

} // namespace zero::onnx

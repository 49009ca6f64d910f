//===- fourier.cpp - DFT: products with matrices of cosines and sines ----------------------------===//
// X[k] = Σ x[j] (cos(2πjk/N) ∓ i sin(2πjk/N)), over one dimension. Real and imaginary part are separate products, joined last, so
// where only one of them is read the others are dead code; and the gradient is that of a product.
#include "compiler/onnx/importer.h"
#include <cmath>

namespace zero::onnx {
namespace {

/// A transform as a matrix costs its length squared; beyond this one should not be made that way.
constexpr int64_t kMaxElements = int64_t(1) << 24;

struct Transform {
  int64_t length = 0;            // N
  int64_t rows = 0, columns = 0; // elements that are read and made, of N
  double scale = 1;
  bool halved = false; // the input is the first half of a spectrum that mirrors itself: its elements count twice
};

Val waves(NodeContext &c, const Transform &t, bool sine, mlir::Type element) {
  std::string key;
  llvm::raw_string_ostream(key) << "dft " << sine << ' ' << t.length << ' ' << t.rows << ' ' << t.columns << ' ' << t.scale << ' '
                                << t.halved << ' ' << element;
  return c.importer.table(key, [&] {
    nn::Tensor w(mlir::RankedTensorType::get({t.rows, t.columns}, element));
    for (int64_t j = 0; j < t.rows; ++j) {
      bool once = !t.halved || j == 0 || 2 * j == t.length;
      for (int64_t k = 0; k < t.columns; ++k) {
        double angle = 2 * M_PI * double(j * k % t.length) / double(t.length); // reduced: exact for long transforms too
        w.set(j * t.columns + k, t.scale * (once ? 1 : 2) * (sine ? std::sin(angle) : std::cos(angle)));
      }
    }
    return w;
  });
}

Vals dft(NodeContext &c) {
  Val x = c.in(0);
  if (!x || !c.only({"axis", "inverse", "onesided"})) return {};
  int64_t rank = x.rank();
  if (!x.isFloat() || rank < 2 || (x.shape().back() != 1 && x.shape().back() != 2))
    return c.fail("its input must hold real numbers, or real and imaginary parts, in a last dimension of 1 or 2");
  int64_t axis = c.opset < 20 ? c.integer("axis", 1) : -2;
  if (c.opset >= 20 && c.has(2)) {
    auto given = c.knownInts(2);
    if (!given) return {};
    if (given->size() != 1) return c.fail("its axis is no single number");
    axis = given->front();
  }
  axis = c.dimension(axis, rank);
  if (axis < 0) return {};
  if (axis == rank - 1) return c.fail("the axis is the dimension of real and imaginary parts");

  bool inverse = c.integer("inverse", 0), onesided = c.integer("onesided", 0), complex = x.shape().back() == 2;
  if (onesided && inverse != complex) return c.fail("onesided is for real signals and their spectra only");
  Transform t;
  t.length = onesided && inverse ? 2 * (x.dim(axis) - 1) : x.dim(axis);
  if (c.has(1)) {
    auto given = c.knownInts(1);
    if (!given) return {};
    if (given->size() != 1) return c.fail("its length is no single number");
    t.length = given->front();
  }
  if (t.length < 1) return c.fail("its length " + llvm::Twine(t.length) + " is not positive");
  if (t.length > kMaxElements / t.length)
    return c.fail("a transform of " + llvm::Twine(t.length) + " elements is too long to be computed as a product");
  int64_t half = t.length / 2 + 1;
  t.halved = onesided && inverse;
  t.rows = std::min(x.dim(axis), t.halved ? half : t.length); // what lies beyond is cut off, what is missing is zero
  t.columns = onesided && !inverse ? half : t.length;
  if (inverse) t.scale = 1.0 / double(t.length);

  // The dimension goes last, real and imaginary parts apart.
  Ints perm = upTo(rank - 1), flat(x.shape().begin(), x.shape().end() - 1);
  std::swap(perm[axis], perm.back());
  auto part = [&](int64_t i) {
    Val p = c.e.sliceDim(c.e.reshape(c.e.sliceDim(x, rank - 1, i, i + 1), flat), axis, 0, t.rows);
    return c.e.transpose(p, perm);
  };
  auto product = [&](const Val &p, bool sine) -> Val {
    if (!p || c.e.failed()) return {};
    Ints shape(p.shape().begin(), p.shape().end());
    Val y = c.e.matmul(c.e.reshape(p, {*elementsOf(p.shape().drop_back()), t.rows}), waves(c, t, sine, x.element()));
    shape.back() = t.columns;
    return c.e.reshape(y, shape);
  };
  auto back = [&](const Val &p) -> Val {
    Val y = c.e.transpose(p, perm);
    if (!y) return {};
    Ints shape(y.shape().begin(), y.shape().end());
    shape.push_back(1);
    return c.e.reshape(y, shape);
  };
  Val real = part(0), re = product(real, false), im;
  if (!complex) {
    im = product(real, true);
    if (!inverse) im = c.e.unary<nn::NegOp>(im);
  } else {
    Val imaginary = part(1), turned = product(imaginary, true);
    re = inverse ? c.e.sub(re, turned) : c.e.add(re, turned);
    if (t.halved) return {back(re)};
    Val straight = product(imaginary, false), across = product(real, true);
    im = inverse ? c.e.add(straight, across) : c.e.sub(straight, across);
  }
  return {c.e.concat({back(re), back(im)}, rank - 1)};
}

} // namespace

void registerFourier(Registry &r) { r["DFT"] = {dft, 17}; }

} // namespace zero::onnx

#include "runtime/device/cpu/half/products.h"
#include <vector>

namespace zero::runtime {

std::span<const HalfProducts::Way> HalfProducts::ways() {
  static const std::vector<Way> found = [] {
    std::vector<Way> list;
    if (bf16::has(bf16::Unit::Matrices)) list.push_back(Matrices);
    bool library = libraryMultipliesBf16(), slow = bf16::hasSlowVectors();
    if (library && !slow) list.push_back(Library);
    list.push_back(Widened);
    if (library && slow) list.push_back(Library);
    return list;
  }();
  return found;
}

HalfProducts::HalfProducts(Way way) : ofBf16(way) {}
HalfProducts::~HalfProducts() = default;

std::optional<bf16::Unit> HalfProducts::unit() const {
  if (ofBf16 == Widened) return std::nullopt;
  return ofBf16 == Matrices ? bf16::Unit::Matrices : bf16::Unit::Vectors;
}

void HalfProducts::prepare(std::span<const MatMulShape> shapes, int threads) {
  if (shapes.empty()) return;
  bool bf16 = shapes.front().dtype == plan::BF16;
  if (bf16 && ofBf16 != Widened) {
    backend = ofBf16 == Matrices ? matrixProducts(shapes, threads) : libraryProducts(shapes, threads);
    return;
  }
  backend = widenedProducts(threads);
  slow = std::string(bf16 ? bf16::hasSlowVectors()
                                ? "this processor's instructions for bf16 products (AVX-512 BF16, no AMX) are slower than those for f32"
                                : "this processor has no instructions for bf16 products (AMX, AVX-512 BF16)"
                          : "the library of products has none of f16 for this processor") +
         ": operands are widened and multiplied in f32, which saves memory but is slower than --precision f32" +
         (bf16 || ofBf16 == Widened ? "" : ", and much slower than --precision bf16 here");
}

void HalfProducts::run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) const {
  if (!backend) throw unannounced(shape);
  backend->run(shape, a, b, c, thread);
}

Error unannounced(const MatMulShape &shape) {
  return Error("a " + plan::DType_Name(shape.dtype) + " product of " + shape.text() +
               " was not announced to the device before the first step");
}

size_t HalfProducts::room() const { return backend ? backend->room() : 0; }

} // namespace zero::runtime

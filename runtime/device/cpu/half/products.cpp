#include "runtime/device/cpu/half/products.h"
#include "runtime/device/cpu/amx/unit.h"
#include <vector>

namespace zero::runtime {

std::span<const HalfProducts::Way> HalfProducts::ways() {
  static const std::vector<Way> found = [] {
    std::vector<Way> list;
    if (amx::available()) list.push_back(Unit);
    if (libraryMultipliesBf16()) list.push_back(Library);
    list.push_back(Widened);
    return list;
  }();
  return found;
}

HalfProducts::HalfProducts(Way way) : way(way) {}
HalfProducts::~HalfProducts() = default;

void HalfProducts::prepare(std::span<const MatMulShape> shapes, int threads) {
  if (shapes.empty()) return;
  bool bf16 = shapes.front().dtype == plan::BF16;
  if (bf16 && way != Widened) {
    maker = way == Unit ? unitProducts(shapes, threads) : libraryProducts(shapes, threads);
    return;
  }
  maker = widenedProducts(threads);
  slow = std::string(bf16 ? "this processor has no instructions for bf16 products (AMX, AVX-512 BF16)"
                          : "the library of products has none of f16 for this processor") +
         ": operands are widened and multiplied in f32, which saves memory but is slower than --precision f32" +
         (bf16 || way == Widened ? "" : ", and much slower than --precision bf16 here");
}

void HalfProducts::run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) const {
  if (!maker) throw unannounced(shape);
  maker->run(shape, a, b, c, thread);
}

Error unannounced(const MatMulShape &s) {
  return Error("a " + plan::DType_Name(s.dtype) + " product of " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
               std::to_string(s.k) + " was not announced to the device before the first step");
}

size_t HalfProducts::room() const { return maker ? maker->room() : 0; }

} // namespace zero::runtime

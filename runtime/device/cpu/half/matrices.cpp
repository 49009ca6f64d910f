#include "runtime/device/cpu/bf16/product.h"
#include "runtime/device/cpu/half/products.h"
#include "runtime/device/cpu/memory.h"
#include <algorithm>
#include <vector>

namespace zero::runtime {
namespace {

class MatrixProducts : public HalfProducts::Backend {
public:
  MatrixProducts(std::span<const MatMulShape> shapes, int threads) {
    for (const MatMulShape &shape : shapes) bytes = std::max(bytes, bf16::roomOf(shape));
    for (int t = 0; t < threads; ++t) rooms.emplace_back("packed operands of products", bytes);
  }

  size_t room() const override { return bytes; }

  void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) override {
    if (bf16::roomOf(shape) > bytes) throw unannounced(shape);
    bf16::product(bf16::Unit::Matrices, shape, a, b, c, rooms[static_cast<size_t>(thread)].data());
  }

private:
  std::vector<MappedArena> rooms;
  size_t bytes = 0; // of each
};

} // namespace

std::unique_ptr<HalfProducts::Backend> matrixProducts(std::span<const MatMulShape> shapes, int threads) {
  return std::make_unique<MatrixProducts>(shapes, threads);
}

} // namespace zero::runtime

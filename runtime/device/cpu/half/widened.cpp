#include "runtime/device/cpu/half/half.h"
#include "runtime/device/cpu/half/products.h"
#include "runtime/device/cpu/matmul.h"
#include <algorithm>
#include <vector>

namespace zero::runtime {
namespace {

// Blocks of A and B are widened, multiplied in f32, summed over k in a block of f32, and that is rounded.
class WidenedProducts : public HalfProducts::Backend {
public:
  explicit WidenedProducts(int count) {
    Thread thread{std::vector<float>(kRows * kInner), std::vector<float>(kInner * kColumns), std::vector<float>(kRows * kColumns)};
    threads.assign(static_cast<size_t>(count), thread);
  }

  size_t room() const override { return sizeof(float) * (kRows * kInner + kInner * kColumns + kRows * kColumns); }

  void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) override {
    Thread &room = threads[static_cast<size_t>(thread)];
    if (shape.dtype == plan::BF16) return multiply(shape, static_cast<const Bf16 *>(a), static_cast<const Bf16 *>(b), c, room);
    multiply(shape, static_cast<const F16 *>(a), static_cast<const F16 *>(b), c, room);
  }

private:
  static constexpr int64_t kRows = 256, kColumns = 256, kInner = 1024;
  struct Thread {
    std::vector<float> a, b, c;
  };
  std::vector<Thread> threads;

  template <typename Half> static void multiply(const MatMulShape &s, const Half *a, const Half *b, void *c, Thread &room) {
    for (int64_t row = 0; row < s.m; row += kRows)
      for (int64_t column = 0; column < s.n; column += kColumns) {
        int64_t rows = std::min(kRows, s.m - row), columns = std::min(kColumns, s.n - column);
        bool narrow = s.cDtype != plan::F32;
        float *sum = narrow ? room.c.data() : static_cast<float *>(c) + row * s.ldc + column;
        Half *result = static_cast<Half *>(c) + row * s.ldc + column; // if narrow
        int64_t ld = narrow ? columns : s.ldc;
        if (narrow && s.accumulate) widen(rows, columns, result, s.ldc, sum, ld);
        for (int64_t inner = 0; inner < s.k; inner += kInner) {
          int64_t k = std::min(kInner, s.k - inner);
          int64_t ldA = s.transA ? rows : k, ldB = s.transB ? k : columns;
          widen(s.transA ? k : rows, ldA, a + (s.transA ? inner * s.lda + row : row * s.lda + inner), s.lda, room.a.data(), ldA);
          widen(s.transB ? columns : k, ldB, b + (s.transB ? column * s.ldb + inner : inner * s.ldb + column), s.ldb, room.b.data(), ldB);
          singleMatmul(s.transA, s.transB, rows, columns, k, 1.0f, room.a.data(), ldA, room.b.data(), ldB, s.accumulate || inner > 0, sum,
                       ld);
        }
        if (narrow) round(rows, columns, sum, ld, result, s.ldc);
      }
  }
};

} // namespace

std::unique_ptr<HalfProducts::Backend> widenedProducts(int threads) { return std::make_unique<WidenedProducts>(threads); }

} // namespace zero::runtime

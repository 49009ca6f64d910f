// How attention multiplies tiles: in f32 by the product library, where bf16 and f16 are widened first, or, of bf16, by one of the
// processor's units, for which probabilities and their gradients are rounded to bf16. Sums are f32 in both.
#pragma once
#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/bf16/product.h"
#include "runtime/device/cpu/matmul.h"

namespace zero::runtime {

struct WidenedTiles {
  // `count` dense rows of q, k, v or their gradients as products read them.
  template <typename T> static const float *rowsOf(const T *rows, int64_t count, int64_t dim, std::vector<float> &room) {
    return asFloats(rows, count, dim, room);
  }
  static const float *tileOf(const std::vector<float> &tile, int64_t, int64_t, int64_t, std::vector<Bf16> &) { return tile.data(); }
  static void multiply(bool transA, bool transB, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                       bool accumulate, float *c, int64_t ldc, AttentionScratch::Thread &) {
    singleMatmul(transA, transB, m, n, k, 1.0f, a, lda, b, ldb, accumulate, c, ldc);
  }
};

struct Bf16Tiles {
  static const Bf16 *rowsOf(const Bf16 *rows, int64_t, int64_t, std::vector<float> &) { return rows; }
  static const Bf16 *tileOf(const std::vector<float> &tile, int64_t rows, int64_t columns, int64_t ld, std::vector<Bf16> &room) {
    round(rows, columns, tile.data(), ld, room.data(), ld);
    return room.data();
  }
  static void multiply(bool transA, bool transB, int64_t m, int64_t n, int64_t k, const Bf16 *a, int64_t lda, const Bf16 *b, int64_t ldb,
                       bool accumulate, float *c, int64_t ldc, AttentionScratch::Thread &thread) {
    MatMulShape shape{m, n, k, 1, transA, transB, lda, ldb, ldc, 0, 0, 0, accumulate, plan::BF16, plan::F32};
    bf16::product(*thread.unit, shape, a, b, c, thread.room.data());
  }
};

} // namespace zero::runtime

// Matrix products: single-threaded library calls on slices that depend on the shape and the number of threads alone.
#pragma once
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/half/products.h"
#include "runtime/device/cpu/thread_pool.h"
#include <vector>

namespace zero::runtime {

// How a product is cut: rows x columns pieces of the given sizes, of which the last may be smaller.
struct ProductGrid {
  int64_t rows, columns; // pieces along m and n
  int64_t rowsPerPiece, columnsPerPiece;
};
ProductGrid gridOf(const MatMulShape &shape, int threads);
// The shapes of its pieces, some of them more than once: what products of bf16 and f16 must be prepared for.
std::vector<MatMulShape> piecesOf(const MatMulShape &shape, int threads);

void matmul(ThreadPool &pool, const HalfProducts &halfProducts, const MatMulCall &call);

// One product on the calling thread: C (+)= op(A) · op(B), row-major f32.
void singleMatmul(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                  int64_t ldb, bool accumulate, float *c, int64_t ldc);

} // namespace zero::runtime

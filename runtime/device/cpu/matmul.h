// Matrix products: single-threaded library calls on slices that depend on the shape and the number of threads alone.
#pragma once
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/thread_pool.h"

namespace zero::runtime {

void matmul(ThreadPool &pool, const MatMulCall &call);

// One product on the calling thread: C (+)= op(A) · op(B), row-major.
void singleMatmul(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                  int64_t ldb, bool accumulate, float *c, int64_t ldc);

} // namespace zero::runtime

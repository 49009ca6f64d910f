//===- row_product.h - a row times a matrix, for the interpreter ------------------------------------===//
#pragma once
#include <cstdint>

namespace zero::nn {

/// out[j] = sum of x[p] · matrix[p, j] over k, or with `transpose` · matrix[j, p], summed in double; n numbers.
template <typename T> void rowTimes(const T *x, const T *matrix, int64_t k, int64_t n, bool transpose, T *out) {
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) sum += double(x[p]) * double(transpose ? matrix[j * k + p] : matrix[p * n + j]);
    out[j] = T(sum);
  }
}

/// sums[i, j] += x[i] · y[j], m x n of them.
template <typename T> void addOuter(const T *x, const T *y, int64_t m, int64_t n, double *sums) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) sums[i * n + j] += double(x[i]) * double(y[j]);
}

} // namespace zero::nn

#include "runtime/device/cpu/matmul.h"
#include "runtime/device/cpu/packing.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <dnnl.h>
#include <omp.h>

namespace zero::runtime {
namespace {

// How one product is cut: rows x columns pieces of the given sizes.
struct Grid {
  int64_t rows, columns; // pieces along m and n
  int64_t rowsPerPiece, columnsPerPiece;
};

constexpr int64_t kRowUnit = 16, kColumnUnit = 16; // a cache line of C; multiples of the library's register tile

int64_t piecesOf(int64_t extent, int64_t piece) { return (extent + piece - 1) / piece; }

// Every piece reads its rows of A and its columns of B: the grid with the smallest sum of both reads least.
Grid gridFor(int64_t m, int64_t n, int64_t k, int threads) {
  // A thread is worth waking for about 20 microseconds of work.
  double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  auto useful = static_cast<int64_t>(flops / 2e6);
  int64_t most = std::clamp<int64_t>(useful, 1, threads);
  // Very large products are cut finer, so that a thread that loses its processor for a while does not hold up the others.
  if (most == threads && threads > 1) most *= std::clamp<int64_t>(useful / (2000 * threads), 1, 4);
  Grid best{1, 1, m, n};
  double bestCost = HUGE_VAL;
  for (int64_t rows = 1; rows <= most; ++rows) {
    int64_t columns = most / rows;
    int64_t height = piecesOf(piecesOf(m, rows), kRowUnit) * kRowUnit;
    int64_t width = piecesOf(piecesOf(n, columns), kColumnUnit) * kColumnUnit;
    // The largest piece decides the time; packing its operands is worth about 40 flops an element.
    double h = static_cast<double>(std::min(height, m)), w = static_cast<double>(std::min(width, n));
    double cost = 2.0 * h * w * static_cast<double>(k) + 40.0 * (h + w) * static_cast<double>(k);
    if (cost < bestCost) {
      bestCost = cost;
      best = {piecesOf(m, height), piecesOf(n, width), height, width};
    }
  }
  return best;
}

// The library allocates what it packs operands in, aligned, in every call. What glibc cuts off at the ends of such a block it puts into the
// thread's cache of small pieces, where it counts as in use: the block that is freed cannot grow over it, is by so much too small for the
// next one, and that begins behind it, and so on, until the cache is full. In one that is full from the start they find no place.
bool fillCacheOfSmallPieces() {
  constexpr size_t kSmallest = 24, kLargest = 1032, kStep = 16, kOfASize = 7; // as glibc has it
  for (size_t bytes = kSmallest; bytes <= kLargest; bytes += kStep) {
    std::array<void *, kOfASize> pieces{};
    for (void *&piece : pieces) {
      piece = std::malloc(bytes);
      asm volatile("" : : "r"(piece) : "memory"); // or the compiler would leave both out
    }
    for (void *piece : pieces) std::free(piece);
  }
  return true;
}

} // namespace

void singleMatmul(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                  int64_t ldb, bool accumulate, float *c, int64_t ldc) {
  // The library must not start threads of its own from ours.
  [[maybe_unused]] thread_local bool alone = (omp_set_num_threads(1), fillCacheOfSmallPieces());
  dnnl_status_t status =
      dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, accumulate ? 1.0f : 0.0f, c, ldc);
  if (status != dnnl_success)
    throw Error("the product library refused a product of " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
                " (status " + std::to_string(status) + ")");
}

void matmul(ThreadPool &pool, const MatMulCall &call) {
  // Batches are spread over the threads first; only what is left of the parallelism cuts the single product.
  int threads = pool.threads();
  bool few = call.batch < 4 * threads && call.batch % threads != 0;
  int perProduct = few ? threads : 1;
  Grid grid = gridFor(call.m, call.n, call.k, perProduct);
  int64_t perBatch = grid.rows * grid.columns;
  auto product = [&](int64_t batch, int64_t part) {
    int64_t row = part / grid.columns * grid.rowsPerPiece, column = part % grid.columns * grid.columnsPerPiece;
    int64_t m = std::min(grid.rowsPerPiece, call.m - row), n = std::min(grid.columnsPerPiece, call.n - column);
    const float *a = call.a + batch * call.strideA + (call.transA ? row : row * call.lda);
    const float *b = call.b + batch * call.strideB + (call.transB ? column * call.ldb : column);
    float *c = call.c + batch * call.strideC + row * call.ldc + column;
    int64_t atOnce = columnsOfACall(m, n);
    for (int64_t first = 0; first < n; first += atOnce)
      singleMatmul(call.transA, call.transB, m, std::min(atOnce, n - first), call.k, 1.0f, a, call.lda,
                   b + first * (call.transB ? call.ldb : 1), call.ldb, call.accumulate, c + first, call.ldc);
  };
  // Small products are claimed several at a time.
  int64_t total = call.batch * perBatch;
  int64_t flops = 2 * grid.rowsPerPiece * grid.columnsPerPiece * call.k;
  int64_t group = perBatch > 1 ? 1 : std::clamp<int64_t>(2000000 / std::max<int64_t>(flops, 1), 1, piecesOf(total, threads));
  pool.run(piecesOf(total, group), [&](int64_t piece, int) {
    for (int64_t i = piece * group; i < std::min(total, (piece + 1) * group); ++i) product(i / perBatch, i % perBatch);
  });
}

} // namespace zero::runtime

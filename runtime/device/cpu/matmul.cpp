#include "runtime/device/cpu/matmul.h"
#include "runtime/base/error.h"
#include "runtime/device/cpu/packing.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dnnl.h>
#include <numeric>
#include <omp.h>

namespace zero::runtime {
namespace {

constexpr int64_t kRowUnit = 16, kColumnUnit = 16; // a cache line of C; multiples of the library's register tile

int64_t piecesOf(int64_t extent, int64_t piece) { return (extent + piece - 1) / piece; }

// What a thread does in about 20 microseconds, for which it is worth waking, and what packing an element of an operand is worth, in flops.
struct Speed {
  double flops, packing;
};
Speed speedOf(plan::DType dtype) { return dtype == plan::F32 ? Speed{2e6, 40} : Speed{8e6, 160}; }

// Every piece reads its rows of A and its columns of B: the grid with the smallest sum of both reads least.
ProductGrid gridFor(int64_t m, int64_t n, int64_t k, int threads, Speed speed) {
  double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  auto useful = static_cast<int64_t>(flops / speed.flops);
  int64_t most = std::clamp<int64_t>(useful, 1, threads);
  // Very large products are cut finer, so that a thread that loses its processor for a while does not hold up the others.
  if (most == threads && threads > 1) most *= std::clamp<int64_t>(useful / (2000 * threads), 1, 4);
  ProductGrid best{1, 1, m, n};
  double bestCost = HUGE_VAL;
  for (int64_t rows = 1; rows <= most; ++rows) {
    int64_t columns = most / rows;
    int64_t height = piecesOf(piecesOf(m, rows), kRowUnit) * kRowUnit;
    int64_t width = piecesOf(piecesOf(n, columns), kColumnUnit) * kColumnUnit;
    // The largest piece decides the time.
    double h = static_cast<double>(std::min(height, m)), w = static_cast<double>(std::min(width, n));
    double cost = 2.0 * h * w * static_cast<double>(k) + speed.packing * (h + w) * static_cast<double>(k);
    if (cost < bestCost) {
      bestCost = cost;
      best = {piecesOf(m, height), piecesOf(n, width), height, width};
    }
  }
  return best;
}

// The library allocates what it packs operands in, aligned, in every call. What glibc cuts off at the ends of such a block it puts into the
// thread's cache of small pieces, where it counts as in use: the block that is freed cannot grow over it, is by so much too small for the
// next one, and that begins after it, and so on, until the cache is full. In one that is full from the start they find no place.
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

// A piece of f32, in calls of so many columns that little is packed at a time.
void multiply(const MatMulShape &of, int64_t m, int64_t n, int64_t k, bool accumulate, const float *a, const float *b, float *c) {
  int64_t atOnce = columnsOfACall(m, n);
  for (int64_t first = 0; first < n; first += atOnce)
    singleMatmul(of.transA, of.transB, m, std::min(atOnce, n - first), k, 1.0f, a, of.lda, b + first * (of.transB ? of.ldb : 1), of.ldb,
                 accumulate, c + first, of.ldc);
}

// The group of a product, -1 if it is left out.
int64_t groupOf(const MatMulCall &call, int64_t batch) {
  int64_t group = static_cast<const int64_t *>(call.group)[batch];
  if (group >= call.groups) throw Error("a product belongs to group " + std::to_string(group) + " of " + std::to_string(call.groups));
  return group;
}

void clear(void *c, int64_t rows, int64_t bytes, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row) std::memset(static_cast<char *>(c) + row * stride, 0, static_cast<size_t>(bytes));
}

// Each group's matrix of C, the sum of its products. Products that follow each other are one of that depth, where they lie one after
// another: stored transposed, as rows of tokens are.
void matmulOfGroups(ThreadPool &pool, const HalfProducts &halfProducts, const MatMulCall &call) {
  ProductGrid grid = gridOf(call, pool.threads());
  int64_t perGroup = grid.rows * grid.columns, size = call.dtype == plan::F32 ? 4 : 2;
  bool joins =
      call.dtype == plan::F32 && call.transA && !call.transB && call.strideA == call.k * call.lda && call.strideB == call.k * call.ldb;
  pool.run(call.groups * perGroup, [&](int64_t piece, int thread) {
    int64_t group = piece / perGroup, part = piece % perGroup;
    int64_t row = part / grid.columns * grid.rowsPerPiece, column = part % grid.columns * grid.columnsPerPiece;
    MatMulShape shape = call;
    shape.m = std::min(grid.rowsPerPiece, call.m - row), shape.n = std::min(grid.columnsPerPiece, call.n - column), shape.accumulate = true;
    float *c = static_cast<float *>(call.c) + group * call.strideC + row * call.ldc + column;
    clear(c, shape.m, shape.n * int64_t(sizeof(float)), call.ldc * int64_t(sizeof(float)));
    for (int64_t batch = 0, next = 0; batch < call.batch; batch = next) {
      next = batch + 1;
      if (groupOf(call, batch) != group) continue;
      while (joins && next < call.batch && groupOf(call, next) == group) ++next;
      const void *a = static_cast<const char *>(call.a) + size * (batch * call.strideA + (call.transA ? row : row * call.lda));
      const void *b = static_cast<const char *>(call.b) + size * (batch * call.strideB + (call.transB ? column * call.ldb : column));
      if (call.dtype != plan::F32)
        halfProducts.run(shape, a, b, c, thread);
      else
        multiply(call, shape.m, shape.n, call.k * (next - batch), true, static_cast<const float *>(a), static_cast<const float *>(b), c);
    }
  });
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

ProductGrid gridOf(const MatMulShape &shape, int threads) {
  // Batches are spread over the threads first; only what is left of the parallelism cuts the single product. Of groups whose products are
  // added up, each is one of its own.
  bool summed = shape.grouped == plan::MatMul::GROUPED_C;
  int64_t products = summed ? shape.groups : shape.batch, depth = summed ? shape.k * piecesOf(shape.batch, shape.groups) : shape.k;
  bool few = products < 4 * threads;
  int64_t each = few ? threads / std::gcd(products, int64_t(threads)) : 1; // pieces of all together are a multiple of the threads
  ProductGrid grid = gridFor(shape.m, shape.n, depth, int(each), speedOf(shape.dtype));
  if (shape.cDtype != plan::F32) {
    grid.columnsPerPiece = columnsOfAHalfCall(grid.rowsPerPiece, grid.columnsPerPiece);
    grid.columns = piecesOf(shape.n, grid.columnsPerPiece);
  }
  return grid;
}

std::vector<MatMulShape> piecesOf(const MatMulShape &shape, int threads) {
  ProductGrid grid = gridOf(shape, threads);
  std::vector<MatMulShape> pieces;
  for (int64_t row : {int64_t(0), (grid.rows - 1) * grid.rowsPerPiece})
    for (int64_t column : {int64_t(0), (grid.columns - 1) * grid.columnsPerPiece}) {
      pieces.push_back(shape);
      if (shape.grouped != plan::MatMul::UNGROUPED) pieces.back().accumulate = shape.grouped == plan::MatMul::GROUPED_C;
      pieces.back().m = std::min(grid.rowsPerPiece, shape.m - row), pieces.back().n = std::min(grid.columnsPerPiece, shape.n - column);
    }
  return pieces;
}

void matmul(ThreadPool &pool, const HalfProducts &halfProducts, const MatMulCall &call) {
  if (call.grouped == plan::MatMul::GROUPED_C) return matmulOfGroups(pool, halfProducts, call);
  int threads = pool.threads();
  ProductGrid grid = gridOf(call, threads);
  int64_t perBatch = grid.rows * grid.columns;
  int64_t size = call.dtype == plan::F32 ? 4 : 2, sizeC = call.cDtype == plan::F32 ? 4 : 2; // bytes of an element
  auto product = [&](int64_t batch, int64_t part, int thread) {
    int64_t row = part / grid.columns * grid.rowsPerPiece, column = part % grid.columns * grid.columnsPerPiece;
    MatMulShape shape = call;
    shape.m = std::min(grid.rowsPerPiece, call.m - row), shape.n = std::min(grid.columnsPerPiece, call.n - column);
    const void *a = static_cast<const char *>(call.a) + size * (batch * call.strideA + (call.transA ? row : row * call.lda));
    void *c = static_cast<char *>(call.c) + sizeC * (batch * call.strideC + row * call.ldc + column);
    int64_t matrix = call.group ? groupOf(call, batch) : batch;
    if (matrix < 0) {
      if (!call.accumulate) clear(c, shape.m, shape.n * sizeC, call.ldc * sizeC);
      return;
    }
    shape.accumulate = call.accumulate && !call.group;
    const void *b = static_cast<const char *>(call.b) + size * (matrix * call.strideB + (call.transB ? column * call.ldb : column));
    if (call.dtype != plan::F32) return halfProducts.run(shape, a, b, c, thread);
    multiply(call, shape.m, shape.n, call.k, shape.accumulate, static_cast<const float *>(a), static_cast<const float *>(b),
             static_cast<float *>(c));
  };
  // Small products are claimed several at a time.
  int64_t total = call.batch * perBatch;
  int64_t flops = 2 * grid.rowsPerPiece * grid.columnsPerPiece * call.k;
  auto worth = static_cast<int64_t>(speedOf(call.dtype).flops);
  int64_t group = perBatch > 1 ? 1 : std::clamp<int64_t>(worth / std::max<int64_t>(flops, 1), 1, piecesOf(total, threads));
  pool.run(piecesOf(total, group), [&](int64_t piece, int thread) {
    for (int64_t i = piece * group; i < std::min(total, (piece + 1) * group); ++i) product(i / perBatch, i % perBatch, thread);
  });
}

} // namespace zero::runtime

// The CPU device against straightforward double-precision references.
#include "runtime/base/error.h"
#include "runtime/device/cpu/attention_tile.h"
#include "runtime/device/cpu/bf16/product.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/half/half.h"
#include "runtime/device/cpu/kernel_library.h"
#include "runtime/device/cpu/matmul.h"
#include "runtime/device/cpu/packing.h"
#include "runtime/device/cpu/thread_pool.h"
#include "runtime/device/devices.h"
#include "runtime/plan/hidden.h"
#include "test/unit/run_fixtures.h"
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <thread>

using namespace zero;
using namespace zero::runtime;
using zero::test::refusalOf;

namespace {

std::vector<float> randomFloats(size_t count, unsigned seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float &value : values) value = normal(generator);
  return values;
}

template <typename Half = Bf16> std::vector<Half> rounded(const std::vector<float> &values) {
  std::vector<Half> result(values.size());
  round(1, static_cast<int64_t>(values.size()), values.data(), 0, result.data(), 0);
  return result;
}
template <typename Half> std::vector<float> widened(const std::vector<Half> &values) {
  std::vector<float> result(values.size());
  widen(1, static_cast<int64_t>(values.size()), values.data(), 0, result.data(), 0);
  return result;
}

TEST(Bf16, RoundsToNearestEvenAndKeepsNotANumber) {
  auto bitsOf = [](float value) { return static_cast<uint16_t>(rounded({value})[0]); };
  auto number = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  EXPECT_EQ(bitsOf(1.0f), 0x3f80);
  EXPECT_EQ(bitsOf(number(0x3f808000)), 0x3f80); // halfway, to even
  EXPECT_EQ(bitsOf(number(0x3f818000)), 0x3f82);
  EXPECT_EQ(bitsOf(number(0x3f808001)), 0x3f81);
  EXPECT_EQ(bitsOf(number(0x3f807fff)), 0x3f80);
  EXPECT_EQ(bitsOf(-0.0f), 0x8000);
  EXPECT_EQ(bitsOf(number(0x00018000)), 0x0002); // subnormal
  EXPECT_EQ(bitsOf(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(bitsOf(-INFINITY), 0xff80);
  for (uint32_t nan : {0x7f800001u, 0xffffffffu, 0x7fc00000u})
    EXPECT_TRUE(std::isnan(widened(std::vector{static_cast<Bf16>(bitsOf(number(nan)))})[0]));
  for (size_t count : {1, 7, 16, 33}) { // vectors and what is left of them
    std::vector<float> values(count, number(0xbf818000));
    EXPECT_EQ(widened(rounded(values)), std::vector<float>(count, number(0xbf820000)));
  }
}

TEST(F16, RoundsToNearestEvenAndKeepsNotANumber) {
  auto bitsOf = [](float value) { return static_cast<uint16_t>(rounded<F16>({value})[0]); };
  EXPECT_EQ(bitsOf(1.0f), 0x3c00);
  EXPECT_EQ(bitsOf(1.0f + 0x1p-11f), 0x3c00); // halfway, to even
  EXPECT_EQ(bitsOf(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(bitsOf(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);
  EXPECT_EQ(bitsOf(-65504.0f), 0xfbff);
  EXPECT_EQ(bitsOf(65519.0f), 0x7bff);
  EXPECT_EQ(bitsOf(65520.0f), 0x7c00); // halfway to what is too large
  EXPECT_EQ(bitsOf(-INFINITY), 0xfc00);
  EXPECT_EQ(bitsOf(0x1p-14f), 0x0400);
  EXPECT_EQ(bitsOf(0x1p-14f - 0x1p-25f), 0x0400); // the smallest normal number, from below
  EXPECT_EQ(bitsOf(-0x1p-24f), 0x8001);
  EXPECT_EQ(bitsOf(0x1p-25f), 0x0000);
  EXPECT_EQ(bitsOf(0x3p-25f), 0x0002);
  EXPECT_EQ(bitsOf(-0.0f), 0x8000);
  EXPECT_TRUE(std::isnan(widened(rounded<F16>({std::bit_cast<float>(0x7f800001u)}))[0]));
  std::vector<F16> all(1 << 16); // widening and rounding again gives each of them back
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<F16>(i);
  std::vector<float> values = widened(all);
  std::vector<F16> again = rounded<F16>(values);
  for (size_t i = 0; i < all.size(); ++i) {
    bool nan = (i & 0x7fff) > 0x7c00;
    ASSERT_EQ(std::isnan(values[i]), nan);
    ASSERT_TRUE(nan || again[i] == all[i]) << i;
  }
}

TEST(ThreadPool, RunsEveryPieceOnce) {
  ThreadPool pool(3);
  for (int64_t pieces : {0, 1, 2, 3, 7, 100}) {
    std::vector<std::atomic<int>> counts(101);
    pool.run(pieces, [&](int64_t piece, int thread) {
      EXPECT_LT(thread, 3);
      counts[static_cast<size_t>(piece)]++;
    });
    for (int64_t i = 0; i < 101; ++i) EXPECT_EQ(counts[static_cast<size_t>(i)], i < pieces ? 1 : 0) << pieces;
  }
}

TEST(ThreadPool, ServesSeveralLanes) {
  ThreadPool pool(2);
  std::atomic<int64_t> total{0};
  auto lane = [&] {
    for (int i = 0; i < 2000; ++i) pool.run(4, [&](int64_t piece, int) { total += piece; });
  };
  std::thread other(lane);
  lane();
  other.join();
  EXPECT_EQ(total, 2 * 2000 * 6);
}

// A lane whose jobs follow each other closely does not keep the threads from another one.
TEST(ThreadPool, LanesTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> jobs = 0;
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) {
      pool.run(2, [](int64_t, int) { std::this_thread::sleep_for(std::chrono::microseconds(500)); });
      ++jobs;
    }
  });
  while (jobs == 0) std::this_thread::yield();
  int soon = 0;
  constexpr int kTurns = 20;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    int before = jobs, after = 0;
    pool.run(1, [&](int64_t, int) { after = jobs; });
    soon += after - before <= 2; // the job that was under way, and one more if the system stopped this thread in between
  }
  done = true;
  busy.join();
  EXPECT_GE(soon, kTurns / 2);
}

TEST(ThreadPool, PassesExceptionsOn) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(8,
                        [](int64_t piece, int) {
                          if (piece == 5) throw Error("five");
                        }),
               Error);
  int64_t after = 0;
  pool.run(1, [&](int64_t, int) { after = 1; });
  EXPECT_EQ(after, 1);
}

struct Product {
  int64_t m, n, k, batch;
  bool transA, transB, accumulate;
  int64_t pad; // added to every leading dimension
};

void checkProduct(const Product &p) {
  int64_t rowsA = p.transA ? p.k : p.m, columnsA = p.transA ? p.m : p.k;
  int64_t rowsB = p.transB ? p.n : p.k, columnsB = p.transB ? p.k : p.n;
  int64_t lda = columnsA + p.pad, ldb = columnsB + p.pad, ldc = p.n + p.pad;
  auto a = randomFloats(static_cast<size_t>(rowsA * lda * p.batch), 1), b = randomFloats(static_cast<size_t>(rowsB * ldb * p.batch), 2);
  auto c = randomFloats(static_cast<size_t>(p.m * ldc * p.batch), 3), before = c;
  Executor executor(2);
  executor.matmul({{p.m, p.n, p.k, p.batch, p.transA, p.transB, lda, ldb, ldc, rowsA * lda, rowsB * ldb, p.m * ldc, p.accumulate},
                   a.data(),
                   b.data(),
                   c.data()});
  for (int64_t t = 0; t < p.batch; ++t)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < ldc; ++j) {
        auto at = static_cast<size_t>(t * p.m * ldc + i * ldc + j);
        if (j >= p.n) {
          ASSERT_EQ(c[at], before[at]) << "padding was written";
          continue;
        }
        double sum = p.accumulate ? before[at] : 0.0;
        for (int64_t l = 0; l < p.k; ++l)
          sum += double(a[static_cast<size_t>(t * rowsA * lda + (p.transA ? l * lda + i : i * lda + l))]) *
                 b[static_cast<size_t>(t * rowsB * ldb + (p.transB ? j * ldb + l : l * ldb + j))];
        ASSERT_NEAR(c[at], sum, 1e-4 * std::sqrt(double(p.k))) << "batch " << t << " row " << i << " column " << j;
      }
}

TEST(MatMul, EveryForm) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (bool accumulate : {false, true}) {
        checkProduct({70, 133, 45, 1, transA, transB, accumulate, 0});
        checkProduct({1, 129, 300, 1, transA, transB, accumulate, 3});
        checkProduct({257, 1, 64, 1, transA, transB, accumulate, 1});
        checkProduct({200, 150, 100, 3, transA, transB, accumulate, 5});
        checkProduct({9, 17, 8, 50, transA, transB, accumulate, 0});
      }
}

// Against what exact arithmetic makes of the rounded operands; what lies between the rows is not a number, and must not matter.
template <typename Half> void checkHalfProduct(const Product &p, plan::DType cType, HalfProducts::Way way) {
  plan::DType type = std::is_same_v<Half, F16> ? plan::F16 : plan::BF16;
  SCOPED_TRACE(testing::Message() << plan::DType_Name(type) << ": " << p.m << " x " << p.n << " x " << p.k << (p.transA ? " A^T" : "")
                                  << (p.transB ? " B^T" : "") << (p.accumulate ? " +" : "") << (cType == plan::F32 ? " to f32" : "")
                                  << ", way " << way);
  int64_t rowsA = p.transA ? p.k : p.m, columnsA = p.transA ? p.m : p.k;
  int64_t rowsB = p.transB ? p.n : p.k, columnsB = p.transB ? p.k : p.n;
  int64_t lda = columnsA + p.pad, ldb = columnsB + p.pad, ldc = p.n + p.pad;
  auto matrices = [&](int64_t rows, int64_t columns, int64_t ld, unsigned seed) {
    auto values = randomFloats(static_cast<size_t>(p.batch * rows * ld), seed);
    for (size_t i = 0; i < values.size(); ++i)
      if (static_cast<int64_t>(i) % ld >= columns) values[i] = NAN;
    return rounded<Half>(values);
  };
  auto a = matrices(rowsA, columnsA, lda, 1), b = matrices(rowsB, columnsB, ldb, 2), c = matrices(p.m, p.n, ldc, 3);
  auto x = widened(a), y = widened(b), before = widened(c), sums = before;
  MatMulShape shape{p.m, p.n,         p.k,         p.batch,   p.transA,     p.transB, lda,  ldb,
                    ldc, rowsA * lda, rowsB * ldb, p.m * ldc, p.accumulate, type,     cType};
  Executor executor(2, way);
  executor.prepare({{}, {shape}});
  executor.matmul({shape, a.data(), b.data(), cType == plan::F32 ? static_cast<void *>(sums.data()) : c.data()});
  auto found = cType == plan::F32 ? sums : widened(c);
  for (int64_t t = 0; t < p.batch; ++t)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < ldc; ++j) {
        auto at = static_cast<size_t>(t * p.m * ldc + i * ldc + j);
        if (j >= p.n) {
          ASSERT_TRUE(std::isnan(found[at])) << "padding was written";
          continue;
        }
        double sum = p.accumulate ? before[at] : 0.0;
        for (int64_t l = 0; l < p.k; ++l)
          sum += double(x[static_cast<size_t>(t * rowsA * lda + (p.transA ? l * lda + i : i * lda + l))]) *
                 y[static_cast<size_t>(t * rowsB * ldb + (p.transB ? j * ldb + l : l * ldb + j))];
        double rounding = cType == plan::F32 ? 0 : std::abs(sum) / (type == plan::BF16 ? 256 : 2048); // to nearest: half of 2^-7, of 2^-10
        ASSERT_NEAR(found[at], sum, 1e-5 * std::sqrt(double(p.k)) + rounding) << "batch " << t << " row " << i << " column " << j;
      }
}

template <typename Half> void checkHalfProducts(plan::DType type, HalfProducts::Way way) {
  for (plan::DType cType : {plan::F32, type})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool accumulate : {false, true}) {
          checkHalfProduct<Half>({70, 133, 45, 1, transA, transB, accumulate, 0}, cType, way);
          checkHalfProduct<Half>({1, 129, 300, 1, transA, transB, accumulate, 3}, cType, way);
          checkHalfProduct<Half>({257, 1, 63, 1, transA, transB, accumulate, 1}, cType, way);
          checkHalfProduct<Half>({100, 150, 100, 3, transA, transB, accumulate, 5}, cType, way);
          checkHalfProduct<Half>({9, 17, 8, 50, transA, transB, accumulate, 0}, cType, way);
          checkHalfProduct<Half>({5, 6, 1, 2, transA, transB, accumulate, 2}, cType, way);
          checkHalfProduct<Half>({64, 96, 128, 1, transA, transB, accumulate, 32}, cType, way);
          checkHalfProduct<Half>({40, 30, 1100, 1, transA, transB, accumulate, 1}, cType, way);
        }
}

TEST(MatMul, Bf16OfEveryForm) {
  for (HalfProducts::Way way : HalfProducts::ways()) checkHalfProducts<Bf16>(plan::BF16, way);
}
TEST(MatMul, F16OfEveryForm) { checkHalfProducts<F16>(plan::F16, HalfProducts::ways().front()); }

TEST(MatMul, Bf16MustBeAnnounced) {
  std::vector<Bf16> a(64), b(64), c(64);
  MatMulShape shape{8, 8, 8, 1, false, false, 8, 8, 8, 0, 0, 0, false, plan::BF16, plan::BF16};
  for (HalfProducts::Way way : HalfProducts::ways()) {
    Executor executor(1, way);
    EXPECT_NE(refusalOf([&] {
                executor.matmul({shape, a.data(), b.data(), c.data()});
              }).find("8 x 8 x 8 was not announced"),
              std::string::npos);
    executor.prepare({{}, {shape}});
    executor.matmul({shape, a.data(), b.data(), c.data()});
    EXPECT_EQ(executor.note().find("this processor"), way == HalfProducts::Widened ? 0 : std::string::npos) << executor.note();
  }
  shape.dtype = shape.cDtype = plan::F16;
  Executor executor(1);
  executor.prepare({{}, {shape}});
  EXPECT_EQ(executor.note().find("the library of products has none of f16"), 0);
}

// Of each unit that this processor has: what a product of doubles gives, and the same bits of a part as of the whole.
TEST(MatMul, UnitsGiveTheSameBitsHoweverProductsAreCut) {
  int found = 0;
  for (bf16::Unit unit : {bf16::Unit::Matrices, bf16::Unit::Vectors}) {
    if (!bf16::has(unit)) continue;
    ++found;
    const int64_t m = 1100, n = 700, k = 1500; // rows, columns and depth that are more than is computed at once
    auto a = rounded<Bf16>(randomFloats(m * k, 1)), b = rounded<Bf16>(randomFloats(k * n, 2));
    auto x = widened(a), y = widened(b);
    auto multiply = [&](int64_t row, int64_t rows, int64_t column, int64_t columns, std::vector<float> &c) {
      MatMulShape shape{rows, columns, k, 1, false, false, k, n, n, 0, 0, 0, false, plan::BF16, plan::F32};
      MappedArena room("packed operands", bf16::roomOf(shape));
      bf16::product(unit, shape, a.data() + row * k, b.data() + column, c.data() + row * n + column, room.data());
    };
    std::vector<float> whole(m * n), cut(m * n);
    multiply(0, m, 0, n, whole);
    for (int64_t row : {0, 3, 500, 516})
      for (int64_t column : {0, 1, 333}) {
        int64_t rows = row == 0 ? 3 : row == 3 ? 497 : row == 500 ? 16 : m - 516, columns = column == 0 ? 1 : column == 1 ? 332 : n - 333;
        multiply(row, rows, column, columns, cut);
      }
    EXPECT_EQ(whole, cut) << "unit " << int(unit);
    for (int64_t i = 0; i < m; i += 37)
      for (int64_t j = 0; j < n; j += 29) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += double(x[static_cast<size_t>(i * k + l)]) * y[static_cast<size_t>(l * n + j)];
        ASSERT_NEAR(whole[static_cast<size_t>(i * n + j)], sum, 1e-5 * std::sqrt(double(k))) << i << " " << j << ", unit " << int(unit);
      }
  }
  if (found == 0) GTEST_SKIP() << "this processor has no instructions for products of bf16";
}

// However large a product is, threads keep no more room for it than a process is said to take.
TEST(MatMul, Bf16NeedsBoundedRoom) {
  for (int64_t m : {1, 250, 1024, 8192})
    for (int64_t n : {64, 768, 3072, 50257})
      for (plan::DType cType : {plan::F32, plan::BF16})
        for (bool trans : {false, true}) {
          MatMulShape shape{m, n, 768, 1, trans, !trans, trans ? m : 768, !trans ? 768 : n, n, 0, 0, 0, false, plan::BF16, cType};
          for (HalfProducts::Way way : HalfProducts::ways()) {
            HalfProducts products(way);
            products.prepare(piecesOf(shape, 2), 2);
            EXPECT_LE(products.room(), kHalfPackingBytes) << m << " x " << n << (trans ? " A^T" : " B^T") << ", way " << way;
          }
        }
}

// However wide C is, each call packs little; and the library takes for each part the road that it would have taken for the whole.
TEST(MatMul, WideOnesAreCut) {
  std::vector<int64_t> widths{1, 50257, 128256, 151936, 256000};
  for (int64_t columns = kColumnsOfACall; columns < 12000; ++columns) widths.push_back(columns);
  for (int64_t rows : {1, 64, 510, 511, 600, 649, 650, 919, 920, 1024, 5000})
    for (int64_t columns : widths) {
      int64_t each = columnsOfACall(rows, columns), last = columns % each ? columns % each : each;
      EXPECT_GT(each, 0);
      if (each >= columns) continue;
      EXPECT_LE(each, kColumnsOfACall);
      EXPECT_EQ(each % kColumnUnitOfACall, 0);
      auto thin = [&](int64_t part) { return 1.0 / static_cast<double>(rows) + 1.0 / static_cast<double>(part) >= 0.00196; };
      EXPECT_EQ(thin(each), thin(columns)) << rows << " x " << columns;
      EXPECT_EQ(thin(last), thin(columns)) << rows << " x " << columns << ", the last " << last;
    }
  ThreadPool pool(1); // more would cut it in other ways
  const int64_t m = 40, n = 12000, k = 24;
  std::vector<float> a = randomFloats(m * k, 1), b = randomFloats(k * n, 2), whole(m * n), cut(m * n);
  for (bool transposed : {false, true}) {
    int64_t ldb = transposed ? k : n;
    MatMulCall call{{m, n, k, 1, false, transposed, k, ldb, n, 0, 0, 0, false, plan::F32, plan::F32}, a.data(), b.data(), cut.data()};
    matmul(pool, HalfProducts(), call);
    singleMatmul(false, transposed, m, n, k, 1.0f, a.data(), k, b.data(), ldb, false, whole.data(), n);
    EXPECT_EQ(whole, cut);
  }
}

// Products of all sizes after each other pack in the same place.
TEST(MatMul, PackInBoundedMemory) {
  auto held = [] {
    std::string key;
    uint64_t kilobytes = 0;
    std::ifstream status("/proc/self/status");
    while (status >> key)
      if (key == "RssAnon:" && status >> kilobytes) break;
    return kilobytes * 1024;
  };
  auto device = makeCpuDevice({.threads = 1}); // which tells the heap what to keep
  const int64_t most = 1400;
  std::vector<float> a(most * most, 1.0f), b(most * most, 1.0f), c(most * most);
  uint64_t before = 0;
  auto run = [&](int rounds) {
    std::mt19937 random(3);
    for (int i = 0; i < rounds; ++i) {
      int64_t m = 700 + random() % 60 * 10, n = 700 + random() % 60 * 10, k = 64 + random() % 40 * 8;
      singleMatmul(false, true, m, n, k, 1.0f, a.data(), k, b.data(), k, false, c.data(), n);
      singleMatmul(true, false, 64, 64 + random() % 8 * 64, 64, 1.0f, a.data(), 64, b.data(), 512, false, c.data(), 512);
    }
  };
  std::thread([&] { // with a heap of its own, as those of the pool have
    singleMatmul(false, true, most, most, 384, 1.0f, a.data(), 384, b.data(), 384, false, c.data(), most);
    before = held();
    run(60);
    EXPECT_LE(held(), before + (2 << 20)) << "it was " << before;
  })
      .join();
}

TEST(MatMul, SameBitsEveryTime) {
  auto a = randomFloats(300 * 400, 1), b = randomFloats(400 * 500, 2);
  std::vector<float> first(300 * 500), again(300 * 500);
  Executor executor(2);
  MatMulCall call{{300, 500, 400, 1, false, false, 400, 500, 500, 0, 0, 0, false}, a.data(), b.data(), first.data()};
  executor.matmul(call);
  call.c = again.data();
  for (int i = 0; i < 20; ++i) {
    executor.matmul(call);
    ASSERT_EQ(0, std::memcmp(first.data(), again.data(), first.size() * 4));
  }
}

// ------------------------------------------------------------------------------------------------------- attention

// Stages place the same tensors at different addresses and must still give the same bits.
TEST(MatMul, SameBitsAtAnyAddress) {
  const int64_t m = 130, n = 200, k = 300;
  auto a = randomFloats(m * k, 1), b = randomFloats(n * k, 2);
  Executor executor(2);
  for (bool transA : {false, true})
    for (bool transB : {false, true}) {
      std::vector<float> first;
      for (size_t shift : {0, 1, 3, 16, 1000}) {
        std::vector<float> x(a.size() + shift), y(b.size() + shift), z(m * n + shift);
        std::copy(a.begin(), a.end(), x.begin() + shift);
        std::copy(b.begin(), b.end(), y.begin() + shift);
        executor.matmul({{m, n, k, 1, transA, transB, transA ? m : k, transB ? k : n, n, 0, 0, 0, false},
                         x.data() + shift,
                         y.data() + shift,
                         z.data() + shift});
        z.erase(z.begin(), z.begin() + shift);
        if (first.empty()) first = z;
        ASSERT_EQ(0, std::memcmp(first.data(), z.data(), z.size() * 4)) << "shifted by " << shift << " elements";
      }
    }
}

struct Case {
  int64_t batch, heads, kvHeads, qLen, kvLen, dim;
  bool causal;
  std::vector<int64_t> mask;
  float largest = 1.0f; // size of the queries, to test the streaming maximum
  std::optional<std::array<int64_t, 2>> band = {};
  float softcap = 0;
  int64_t biasParts = 0; // 0: no bias
  bool beyond = false;

  // Query i sees keys i + first to i + last.
  int64_t first() const { return band ? (*band)[0] : -qLen; }
  int64_t last() const { return std::min(causal ? kvLen - qLen : kvLen, band ? (*band)[1] : kvLen); }
};

constexpr float kLowest = std::numeric_limits<float>::lowest(); // by which models hide

struct Reference {
  std::vector<double> out, lse, dq, dk, dv, dbias;
};

// Everything in double, directly from the definition, but for masks: they are added in f32, which does not hold a score beside a low one.
Reference reference(const Case &s, float scale, const std::vector<float> &q, const std::vector<float> &k, const std::vector<float> &v,
                    const std::vector<float> &mask, const std::vector<float> &bias, const std::vector<float> &dout) {
  Reference r{std::vector<double>(q.size()), std::vector<double>(static_cast<size_t>(s.batch * s.heads * s.qLen)),
              std::vector<double>(q.size()), std::vector<double>(k.size()),
              std::vector<double>(v.size()), std::vector<double>(bias.size() * static_cast<size_t>(s.biasParts))};
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.qLen; ++i) {
        size_t qi = static_cast<size_t>(((b * s.heads + h) * s.qLen + i) * s.dim);
        size_t kv = static_cast<size_t>((b * s.kvHeads + h / (s.heads / s.kvHeads)) * s.kvLen * s.dim);
        std::vector<double> p(static_cast<size_t>(s.kvLen)), dp(p.size()), slope(p.size(), 1.0);
        double max = -INFINITY, sum = 0, delta = 0;
        for (int64_t j = 0; j < s.kvLen; ++j) {
          double score = 0;
          for (int64_t d = 0; d < s.dim; ++d) score += double(q[qi + d]) * k[kv + j * s.dim + d];
          score *= scale;
          if (s.softcap > 0) {
            double t = std::tanh(score / s.softcap);
            score = s.softcap * t, slope[static_cast<size_t>(j)] = 1 - t * t;
          }
          if (!bias.empty()) score += bias[static_cast<size_t>((h * s.qLen + i) * s.kvLen + j)];
          if (!s.mask.empty()) {
            int64_t index = 0;
            const int64_t at[4] = {b, h, i, j};
            for (int x = 0; x < 4; ++x) index = index * s.mask[x] + (s.mask[x] == 1 ? 0 : at[x]);
            score = float(score) + mask[static_cast<size_t>(index)];
          }
          if (j < i + s.first() || j > i + s.last()) score = s.beyond ? kLowest : -INFINITY;
          p[static_cast<size_t>(j)] = score;
          max = std::max(max, score);
        }
        for (double &x : p) sum += x = max == -INFINITY ? 0 : std::exp(x - max);
        r.lse[qi / s.dim] = sum == 0 ? -INFINITY : max < plan::kHidden ? plan::lseOfHidden(float(sum)) : max + std::log(sum);
        for (int64_t j = 0; j < s.kvLen; ++j) {
          if (sum > 0) p[j] /= sum;
          for (int64_t d = 0; d < s.dim; ++d) {
            r.out[qi + d] += p[j] * v[kv + j * s.dim + d];
            dp[j] += double(dout[qi + d]) * v[kv + j * s.dim + d];
            r.dv[kv + j * s.dim + d] += p[j] * dout[qi + d];
          }
          delta += p[j] * dp[j];
        }
        for (int64_t j = 0; j < s.kvLen; ++j) {
          double ds = p[j] * (dp[j] - delta);
          if (!bias.empty()) r.dbias[static_cast<size_t>(((b * s.biasParts / s.batch * s.heads + h) * s.qLen + i) * s.kvLen + j)] += ds;
          ds *= slope[j] * scale;
          for (int64_t d = 0; d < s.dim; ++d) {
            r.dq[qi + d] += ds * k[kv + j * s.dim + d];
            r.dk[kv + j * s.dim + d] += ds * q[qi + d];
          }
        }
      }
  return r;
}

void expectClose(const std::vector<float> &found, const std::vector<double> &expected, const char *what, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  double norm = 0;
  for (double x : expected) norm = std::max(norm, std::isfinite(x) ? std::abs(x) : 0.0);
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(expected[i])) {
      ASSERT_EQ(found[i], expected[i]) << what << " " << i;
      continue;
    }
    ASSERT_NEAR(found[i], expected[i], tolerance * norm + 1e-7) << what << " " << i;
  }
}

// Of `type` bf16 or f16: the operands rounded to it, as exact numbers.
void checkAttention(const Case &s, const std::vector<float> *givenMask = nullptr, plan::DType type = plan::F32,
                    HalfProducts::Way way = HalfProducts::ways().front()) {
  size_t queries = static_cast<size_t>(s.batch * s.heads * s.qLen * s.dim),
         keys = static_cast<size_t>(s.batch * s.kvHeads * s.kvLen * s.dim);
  auto q = randomFloats(queries, 1, s.largest), k = randomFloats(keys, 2), v = randomFloats(keys, 3), dout = randomFloats(queries, 4);
  std::vector<float> mask, bias;
  AttentionCall call{};
  if (s.biasParts > 0) {
    bias = randomFloats(static_cast<size_t>(s.heads * s.qLen * s.kvLen), 6);
    call.bias = bias.data(), call.biasParts = s.biasParts;
  }
  std::vector<float> dbias(bias.size() * static_cast<size_t>(s.biasParts), 99.0f);
  if (!s.mask.empty()) {
    mask = givenMask ? *givenMask : randomFloats(static_cast<size_t>(s.mask[0] * s.mask[1] * s.mask[2] * s.mask[3]), 5);
    int64_t stride = 1;
    for (int x = 3; x >= 0; --x) {
      call.maskStride[x] = s.mask[x] == 1 ? 0 : stride;
      stride *= s.mask[x];
    }
  }
  std::vector<float> out(queries), lse(queries / s.dim), dq(queries), dk(keys), dv(keys);
  float scale = 1.0f / std::sqrt(float(s.dim));
  call.q = q.data(), call.k = k.data(), call.v = v.data(), call.mask = mask.empty() ? nullptr : mask.data();
  call.out = out.data(), call.lse = lse.data();
  call.batch = s.batch, call.heads = s.heads, call.kvHeads = s.kvHeads, call.qLen = s.qLen, call.kvLen = s.kvLen, call.dim = s.dim;
  call.scale = scale, call.softcap = s.softcap, call.first = s.first(), call.last = s.last(), call.beyond = s.beyond;
  Executor executor(2, way);
  executor.prepare({{s.dim, s.kvLen, s.qLen, type != plan::F32}});
  auto inHalf = [&]<typename Half>(Half) {
    auto q16 = rounded<Half>(q), k16 = rounded<Half>(k), v16 = rounded<Half>(v), dout16 = rounded<Half>(dout);
    std::vector<Half> out16(queries), dq16(queries), dk16(keys), dv16(keys);
    call.q = q16.data(), call.k = k16.data(), call.v = v16.data(), call.out = out16.data(), call.dtype = type;
    executor.attention(call);
    executor.attentionGrad({call, dout16.data(), dq16.data(), dk16.data(), dv16.data(), dbias.data()});
    q = widened(q16), k = widened(k16), v = widened(v16), dout = widened(dout16);
    out = widened(out16), dq = widened(dq16), dk = widened(dk16), dv = widened(dv16);
  };
  if (type == plan::BF16) {
    inHalf(Bf16{});
  } else if (type == plan::F16) {
    inHalf(F16{});
  } else {
    executor.attention(call);
    executor.attentionGrad({call, dout.data(), dq.data(), dk.data(), dv.data(), dbias.data()});
  }
  Reference expected = reference(s, scale, q, k, v, mask, bias, dout);
  double tolerance = 5e-6 * s.largest;    // an f32 score is off by its size times 2^-24, which the exponential passes on
  for (size_t i = 0; i < lse.size(); ++i) // which says how many keys a row weighs
    if (std::isfinite(expected.lse[i]) && expected.lse[i] < plan::kHidden) {
      ASSERT_EQ(lse[i], float(expected.lse[i])) << "lse " << i;
      lse[i] = 0, expected.lse[i] = 0;
    }
  expectClose(lse, expected.lse, "lse", tolerance);
  if (type != plan::F32)
    tolerance += type == plan::BF16 ? 1.0 / 128 : 1.0 / 1024; // the results' rounding, and the output's in its gradient
  expectClose(out, expected.out, "out", tolerance);
  expectClose(dq, expected.dq, "dq", tolerance);
  expectClose(dk, expected.dk, "dk", tolerance);
  expectClose(dv, expected.dv, "dv", tolerance);
  expectClose(dbias, expected.dbias, "dbias", tolerance * std::sqrt(double(s.batch))); // a sum over samples
}

TEST(Attention, Plain) { checkAttention({2, 3, 3, 37, 37, 16, false, {}}); }
TEST(Attention, Causal) { checkAttention({2, 2, 2, 150, 150, 64, true, {}}); }
TEST(Attention, ManyKeyBlocks) { checkAttention({1, 1, 1, 70, 1100, 8, false, {}}); }
TEST(Attention, CausalWithManyKeyBlocks) { checkAttention({1, 2, 1, 700, 1100, 8, true, {}}); }
TEST(Attention, GroupedHeads) { checkAttention({2, 6, 2, 33, 65, 24, true, {}}); }
TEST(Attention, LargeScoresDoNotOverflow) { checkAttention({1, 2, 2, 20, 600, 16, false, {}, 200.0f}); }
TEST(Attention, SmallDimensions) { checkAttention({1, 1, 1, 1, 1, 1, true, {}}), checkAttention({3, 2, 1, 5, 3, 5, false, {}}); }
TEST(Attention, MaskOfEveryShape) {
  checkAttention({2, 2, 2, 21, 37, 8, false, {2, 2, 21, 37}});
  checkAttention({2, 2, 2, 21, 37, 8, true, {2, 1, 1, 37}});
  checkAttention({2, 2, 1, 21, 37, 8, false, {1, 1, 21, 37}});
  checkAttention({2, 2, 2, 21, 37, 8, false, {1, 2, 21, 1}});
  checkAttention({2, 2, 2, 21, 37, 8, false, {1, 1, 1, 1}});
}
TEST(Attention, RowsThatSeeNothingAreZero) {
  checkAttention({1, 2, 2, 9, 4, 8, true, {}}); // more queries than keys: the first rows see no key
  std::vector<float> mask(21 * 37, 0.0f);
  for (int j = 0; j < 37; ++j) mask[static_cast<size_t>(3 * 37 + j)] = -INFINITY;
  mask[5] = -INFINITY;
  checkAttention({2, 2, 2, 21, 37, 8, false, {1, 1, 21, 37}}, &mask);
}
// Windows narrower and wider than a tile of keys, to one side and to both, over more and over fewer keys than queries, under a mask.
Case inWindow(int64_t queries, int64_t keys, std::array<int64_t, 2> band, bool causal = false, std::vector<int64_t> mask = {}) {
  return {1, 2, 1, queries, keys, 16, causal, std::move(mask), 1.0f, band};
}
const std::vector<Case> &windows() {
  static const std::vector<Case> cases{inWindow(150, 150, {-20, 0}),
                                       inWindow(1300, 1300, {-600, 0}),
                                       inWindow(700, 700, {-33, 17}),
                                       inWindow(90, 1200, {550, 1000}),
                                       inWindow(300, 40, {-100, -3}), // the first queries see no key, and the last ones neither
                                       inWindow(200, 210, {-5, 200}, /*causal=*/true),
                                       inWindow(130, 700, {-9, 300}, false, {1, 1, 130, 700}),
                                       inWindow(40, 40, {-1, 0})};
  return cases;
}
TEST(Attention, Windows) {
  for (const Case &s : windows()) {
    checkAttention(s);
    for (HalfProducts::Way way : HalfProducts::ways()) checkAttention(s, nullptr, plan::BF16, way);
  }
}
// Learnt biases, whose gradient is summed over samples: all of them, some, or none.
const std::vector<Case> &biased() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all{{4, 3, 3, 37, 37, 16, false, {}}, {4, 4, 2, 150, 150, 24, true, {4, 1, 1, 150}},
                          {2, 2, 2, 70, 600, 8, false, {}}, {6, 2, 1, 9, 53, 8, false, {6, 1, 9, 53}},
                          {1, 2, 2, 130, 21, 16, true, {}}, {2, 1, 1, 1, 1, 1, false, {}}};
    for (Case &s : all) s.biasParts = s.batch % 2 ? 1 : s.batch / 2;
    all.push_back(inWindow(130, 700, {-9, 300})), all.back().biasParts = 1;
    all.push_back(all[0]), all.back().softcap = 1, all.back().biasParts = 4;
    all.push_back(all[1]), all.back().biasParts = 1;
    return all;
  }();
  return cases;
}
TEST(Attention, Biases) {
  for (const Case &s : biased()) {
    SCOPED_TRACE(std::to_string(s.qLen) + " x " + std::to_string(s.kvLen) + " in parts: " + std::to_string(s.biasParts));
    checkAttention(s);
    for (HalfProducts::Way way : HalfProducts::ways()) checkAttention(s, nullptr, plan::BF16, way);
    checkAttention(s, nullptr, plan::F16);
  }
}
// Scores far below the cap, near it and far above.
TEST(Attention, CappedScores) {
  for (float largest : {0.3f, 3.0f, 60.0f})
    for (float cap : {1.0f, 50.0f})
      for (Case s : {Case{2, 4, 2, 37, 53, 16, true, {}}, Case{1, 2, 2, 70, 600, 24, false, {1, 1, 70, 600}}, inWindow(90, 90, {-9, 0})}) {
        s.largest = largest, s.softcap = cap;
        SCOPED_TRACE(std::to_string(largest) + " under " + std::to_string(cap));
        checkAttention(s);
        if (largest > 3) continue; // where operands' rounding moves whole probabilities
        for (HalfProducts::Way way : HalfProducts::ways()) checkAttention(s, nullptr, plan::BF16, way);
      }
}
TEST(Attention, Bf16AndF16) {
  for (Case s : {Case{2, 3, 3, 37, 37, 16, false, {}}, Case{2, 2, 2, 150, 150, 64, true, {}}, Case{1, 2, 1, 700, 1100, 8, true, {}},
                 Case{2, 6, 2, 33, 65, 24, true, {}}, Case{3, 2, 1, 5, 3, 5, false, {}}, Case{1, 2, 2, 9, 4, 8, true, {}},
                 Case{2, 2, 1, 21, 37, 8, false, {1, 1, 21, 37}}, Case{1, 1, 1, 70, 4100, 128, false, {}}}) // the last: blocks of sums
  {
    for (HalfProducts::Way way : HalfProducts::ways()) checkAttention(s, nullptr, plan::BF16, way);
    checkAttention(s, nullptr, plan::F16);
  }
}
// Samples padded in front: their first rows see nothing but what the mask hides. Of sample 0 a block of rows and more, of sample 1 all, of
// others few.
struct Padded {
  Case attention;
  std::vector<float> mask;
};
std::vector<Padded> padded() {
  std::vector<Padded> cases;
  for (Case s : {Case{3, 2, 2, 150, 150, 16, true, {3, 1, 1, 150}}, Case{2, 4, 2, 70, 1100, 8, false, {2, 1, 1, 1100}},
                 Case{1, 2, 1, 700, 700, 24, true, {1, 1, 1, 700}}, Case{2, 2, 1, 90, 90, 16, true, {2, 1, 90, 90}},
                 inWindow(300, 300, {-20, 0}, false, {1, 1, 1, 300}), inWindow(130, 700, {-9, 300}, false, {1, 2, 1, 700})})
    for (float low : {kLowest, -1e9f})
      for (bool beyond : {false, true}) {
        if (beyond && (low != kLowest || (s.first() < -s.qLen + 1 && s.last() > s.kvLen - 2))) continue; // keys are all within bounds
        s.beyond = beyond, s.softcap = low == kLowest ? 0 : 5, s.biasParts = s.batch == 2 ? 1 : 0;
        const int64_t before[] = {100, s.kvLen, 3};
        std::vector<float> mask;
        for (int64_t b = 0; b < s.mask[0]; ++b)
          for (int64_t line = 0; line < s.mask[1] * s.mask[2]; ++line)
            for (int64_t j = 0; j < s.kvLen; ++j) mask.push_back(j < std::min(before[b], s.kvLen - (b != 1)) ? low : 0);
        mask[2] = -INFINITY; // for all rows
        cases.push_back({s, mask});
      }
  return cases;
}
TEST(Attention, RowsThatSeeNothingButWhatIsHidden) {
  for (const auto &[s, mask] : padded()) {
    SCOPED_TRACE(std::to_string(s.qLen) + " x " + std::to_string(s.kvLen) + (s.beyond ? " and beyond" : "") + (s.softcap ? " capped" : ""));
    checkAttention(s, &mask);
    for (HalfProducts::Way way : HalfProducts::ways()) checkAttention(s, &mask, plan::BF16, way);
    checkAttention(s, &mask, plan::F16);
  }
}
TEST(Attention, NotANumberStaysVisible) {
  std::vector<float> q(16 * 8, 1.0f), k = q, v = q, out(q.size()), lse(16);
  q[8 * 3] = NAN;
  Executor executor(1);
  executor.prepare({{8, 16, 16}});
  AttentionCall call{{1, 1, 1, 16, 16, 8, 1.0f, -15, 15, {}}, q.data(), k.data(), v.data(), nullptr, out.data(), lse.data()};
  executor.attention(call);
  EXPECT_TRUE(std::isnan(out[8 * 3]));
  EXPECT_NEAR(out[8 * 4], 1.0f, 1e-6);
}
// Cut by heads, and by blocks of keys and of queries.
TEST(Attention, SameBitsWithAnyNumberOfThreads) {
  std::vector<Case> cases{{1, 2, 1, 300, 300, 24, true, {}}, {1, 3, 3, 130, 700, 16, false, {1, 1, 130, 700}},
                          {2, 4, 2, 100, 90, 8, true, {}},   {2, 8, 4, 70, 200, 16, true, {}},
                          inWindow(700, 700, {-300, 0}),     inWindow(130, 700, {-9, 300}, false, {1, 1, 130, 700})};
  cases.push_back(cases.back()), cases.back().beyond = true; // some rows see nothing but what is hidden
  for (const Case &s : biased())
    if (s.mask.empty()) cases.push_back(s);
  for (const Case &s : cases) {
    auto queries = static_cast<size_t>(s.batch * s.heads * s.qLen * s.dim),
         keys = static_cast<size_t>(s.batch * s.kvHeads * s.kvLen * s.dim);
    auto q = randomFloats(queries, 1), k = randomFloats(keys, 2), v = randomFloats(keys, 3), dout = randomFloats(queries, 4);
    auto mask = randomFloats(static_cast<size_t>(s.qLen * s.kvLen), 5),
         bias = randomFloats(static_cast<size_t>(s.heads * s.qLen * s.kvLen), 6);
    if (s.beyond) std::fill_n(mask.begin() + 30 * s.kvLen, 70 * s.kvLen, kLowest);
    std::vector<std::vector<float>> first;
    for (int threads : {1, 2, 3, 8, 17}) {
      std::vector<float> out(queries), lse(queries / s.dim), dq(queries), dk(keys), dv(keys);
      AttentionShape shape{s.batch, s.heads, s.kvHeads, s.qLen, s.kvLen, s.dim, 0.25f, s.first(), s.last(), {0, 0, s.kvLen, 1}};
      shape.softcap = s.softcap, shape.biasParts = s.biasParts, shape.beyond = s.beyond;
      std::vector<float> dbias(bias.size() * static_cast<size_t>(s.biasParts));
      AttentionCall call{shape,
                         q.data(),
                         k.data(),
                         v.data(),
                         s.mask.empty() ? nullptr : mask.data(),
                         out.data(),
                         lse.data(),
                         s.biasParts ? bias.data() : nullptr};
      Executor executor(threads);
      executor.prepare({{s.dim, s.kvLen, s.qLen, true}});
      executor.attention(call);
      float *biasGradient = s.biasParts ? dbias.data() : nullptr;
      executor.attentionGrad({call, dout.data(), dq.data(), dk.data(), dv.data(), biasGradient});
      std::vector<std::vector<float>> found{out, lse, dq, dk, dv, dbias};
      auto q16 = rounded(q), k16 = rounded(k), v16 = rounded(v), dout16 = rounded(dout);
      std::vector<Bf16> out16(queries), dq16(queries), dk16(keys), dv16(keys);
      shape.dtype = plan::BF16;
      call = {shape, q16.data(), k16.data(), v16.data(), call.mask, out16.data(), lse.data(), call.bias};
      executor.attention(call);
      executor.attentionGrad({call, dout16.data(), dq16.data(), dk16.data(), dv16.data(), biasGradient});
      found.push_back(dbias);
      for (const auto &result : {out16, dq16, dk16, dv16}) found.push_back(widened(result));
      if (first.empty()) first = found;
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_EQ(0, std::memcmp(first[i].data(), found[i].data(), found[i].size() * 4)) << threads << " threads, result " << i;
    }
  }
}

// Every level of x86-64 this machine can run, not only the one it uses.
TEST(Attention, LoopsOfEveryLevel) {
  for (const TileLoops &loops : tileLoops()) {
    SCOPED_TRACE(loops.level);
    constexpr int64_t rows = 5, columns = 37, ld = 48, dim = 19;
    auto scores = randomFloats(rows * ld, 1, 3.0f), mask = randomFloats(rows * columns, 2), bias = randomFloats(rows * columns, 6),
         dbias = randomFloats(rows * columns, 7), dscores = randomFloats(rows * ld, 3), a = randomFloats(rows * dim, 4),
         b = randomFloats(rows * dim, 5);
    auto probabilities = scores, grads = dscores;
    std::vector<float> max(rows, -INFINITY), sum(rows, 0.0f), out(rows * dim, 1.0f), lse(rows), delta(rows);
    constexpr int64_t firstSeen = 15, endSeen = 31; // of row 0: the rows see 15 to 31, 16 to 32, …
    auto sees = [&](int64_t row, int64_t c) { return c >= firstSeen + row && c < std::min<int64_t>(columns, endSeen + row); };
    auto score = [&](int64_t r, int64_t c) { return 0.5 * double(scores[r * ld + c]) + mask[r * columns + c] + bias[r * columns + c]; };
    TileMask masks{mask.data(), columns, 1}, biases{bias.data(), columns, 1};
    auto added = dbias;
    loops.softmaxTile({probabilities.data(), rows, columns, ld, 0.5f, 0.0f, masks, biases, firstSeen, endSeen}, max.data(), sum.data(),
                      out.data(), dim, true);
    loops.finishRows(rows, dim, max.data(), sum.data(), out.data(), lse.data());
    loops.rowDots(rows, dim, a.data(), b.data(), delta.data());
    auto again = scores;
    loops.gradTile({again.data(), rows, columns, ld, 0.5f, 0.0f, masks, biases, firstSeen, endSeen}, grads.data(), lse.data(), delta.data(),
                   added.data());
    for (int64_t r = 0; r < rows; ++r) {
      double largest = -INFINITY, total = 0, dot = 0;
      for (int64_t c = 0; c < columns; ++c)
        if (sees(r, c)) largest = std::max(largest, score(r, c));
      for (int64_t c = 0; c < columns; ++c)
        if (sees(r, c)) total += std::exp(score(r, c) - largest);
      for (int64_t d = 0; d < dim; ++d) dot += double(a[r * dim + d]) * b[r * dim + d];
      EXPECT_NEAR(max[r], largest, 1e-5);
      EXPECT_NEAR(sum[r], total, 1e-5 * total);
      EXPECT_NEAR(lse[r], largest + std::log(total), 1e-5);
      EXPECT_NEAR(delta[r], dot, 1e-5);
      EXPECT_NEAR(out[r * dim], 1 / total, 1e-6);
      for (int64_t c = 0; c < columns; ++c) {
        double e = sees(r, c) ? std::exp(score(r, c) - largest) : 0, p = e / total;
        EXPECT_NEAR(probabilities[r * ld + c], e, 1e-5) << r << " " << c;
        EXPECT_NEAR(again[r * ld + c], p, 1e-5) << r << " " << c;
        EXPECT_NEAR(grads[r * ld + c], 0.5 * p * (dscores[r * ld + c] - dot), 1e-5) << r << " " << c;
        EXPECT_NEAR(added[r * columns + c], dbias[r * columns + c] + p * (dscores[r * ld + c] - dot), 1e-5) << r << " " << c;
      }
    }
  }
}

// Of rows that see nothing but what is hidden: row 0 sees one column that counts, row 1 all within its bounds, row 2 is ordinary.
TEST(Attention, HiddenLoopsOfEveryLevel) {
  for (const TileLoops &loops : tileLoops())
    for (bool beyond : {false, true}) {
      SCOPED_TRACE(loops.level);
      constexpr int64_t rows = 3, columns = 37, ld = 48, firstSeen = 15, endSeen = 31;
      std::vector<float> scores(rows * ld, 9.0f), mask(rows * columns, kLowest), sum(rows, 0.0f), delta(rows, 0.25f);
      std::fill_n(mask.begin() + 16, columns - 16, -INFINITY);
      const float max[] = {kLowest, kLowest, 1.0f};
      auto grads = randomFloats(rows * ld, 3), before = grads;
      auto counts = [&](int64_t row, int64_t c) {
        bool seen = c >= firstSeen + row && c < endSeen + row;
        return row < 2 && (seen ? mask[static_cast<size_t>(row * columns + c)] == kLowest : beyond);
      };
      Tile tile{scores.data(), rows, columns, ld, 0.5f, 0.0f, {mask.data(), columns, 1}, {}, firstSeen, endSeen, beyond};
      loops.hiddenTile(tile, max, sum.data());
      const float lse[] = {plan::lseOfHidden(sum[0]), plan::lseOfHidden(sum[1]), 1.0f};
      for (int64_t r = 0; r < rows; ++r) {
        float total = 0;
        for (int64_t c = 0; c < columns; ++c) {
          EXPECT_EQ(scores[static_cast<size_t>(r * ld + c)], float(counts(r, c))) << r << " " << c;
          total += float(counts(r, c));
        }
        EXPECT_EQ(sum[static_cast<size_t>(r)], total);
      }
      std::fill(scores.begin(), scores.end(), 9.0f);
      loops.hiddenGradTile(tile, grads.data(), lse, delta.data(), nullptr);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          auto at = static_cast<size_t>(r * ld + c);
          float p = counts(r, c) ? 1 / sum[static_cast<size_t>(r)] : 0;
          EXPECT_FLOAT_EQ(scores[at], p) << r << " " << c;
          EXPECT_FLOAT_EQ(grads[at], 0.5f * p * (before[at] - 0.25f)) << r << " " << c;
        }
    }
}

TEST(Attention, RefusesWhatWasNotAnnounced) {
  Executor executor(1);
  executor.prepare({{8, 16, 16}});
  AttentionCall call{};
  call.qLen = 17, call.kvLen = 16, call.batch = call.heads = call.kvHeads = 1, call.dim = 8;
  EXPECT_THROW(executor.attention(call), Error);
  call.qLen = 16, call.dtype = plan::BF16;
  EXPECT_THROW(executor.attention(call), Error);
}

// --------------------------------------------------------------------------------------------------- kernels, memory

TEST(Kernels, LoadedFromMemoryAndCut) {
  std::vector<std::string> objects;
  for (int which : {1, 2})
    objects.push_back(test::compileKernels("void add(void *const *args, long begin, long end) { float *x = args[0];"
                                           "for (long i = begin; i < end; ++i) x[i] += " +
                                           std::to_string(which) +
                                           "; }\nconst unsigned long bounds[] __asm__(\"add.bounds\") = {1001, 1, 4004, 0};\n"));
  // Two libraries at once: the second must not be taken for the first.
  Executor executor(2);
  auto device = makeCpuDevice({.threads = 1});
  std::vector<float> x(1001, 0.0f);
  void *args[] = {x.data()};
  std::vector<std::unique_ptr<KernelLibrary>> libraries;
  for (const auto &object : objects) {
    KernelSymbol symbol{"add", 1001, {4004}};
    libraries.push_back(std::make_unique<KernelLibrary>(std::as_bytes(std::span(object)), std::span<const KernelSymbol>(&symbol, 1)));
    executor.launch({libraries.back()->functions()[0], args, 1001, 10});
  }
  for (float value : x) ASSERT_EQ(value, 3.0f);
  KernelSymbol missing{"subtract", 1, {4}};
  std::span<const std::byte> whole = std::as_bytes(std::span(objects[0]));
  EXPECT_THROW(device->loadKernels(whole, {&missing, 1}), Error);
  EXPECT_THROW(device->loadKernels(whole.first(100), {&missing, 1}), Error);
}

TEST(Kernels, ReachAsFarAsTheObjectSays) {
  std::string code = "void add(void *const *args, long begin, long end) { (void)args, (void)begin, (void)end; }\n";
  std::string object = test::compileKernels(code + "const unsigned long bounds[] __asm__(\"add.bounds\") = {8, 2, 32, 64, 4};\n");
  std::string silent = test::compileKernels(code);
  auto device = makeCpuDevice({.threads = 1});
  auto refusal = [&](const std::string &bytes, uint64_t extent, std::vector<uint64_t> argBytes, uint64_t row = 4) {
    KernelSymbol symbol{"add", extent, std::move(argBytes), row};
    return test::refusalOf([&] { device->loadKernels(std::as_bytes(std::span(bytes)), {&symbol, 1}); });
  };
  EXPECT_EQ(refusal(object, 8, {32, 64}), "");
  EXPECT_EQ(
      refusal(object, 8000000, {32, 64}),
      "kernel 'add' is made for 8 iterations of 4 elements over 32, 64 bytes, but the plan says 8000000 iterations of 4 elements over "
      "32, 64 bytes; compile the plan again");
  EXPECT_NE(refusal(object, 8, {32, 64}, 5).find("the plan says 8 iterations of 5 elements"), std::string::npos);
  EXPECT_NE(refusal(object, 8, {32, 64}, 0).find("the plan says 8 iterations over"), std::string::npos);
  EXPECT_NE(refusal(object, 8, {32, 32}).find("the plan says 8 iterations of 4 elements over 32, 32 bytes"), std::string::npos);
  EXPECT_NE(refusal(object, 8, {32}).find("the plan says 8 iterations of 4 elements over 32 bytes"), std::string::npos);
  EXPECT_NE(refusal(object, 8, {32, 64, 4}).find("the plan says 8 iterations of 4 elements over 32, 64, 4 bytes"), std::string::npos);
  EXPECT_NE(refusal(silent, 8, {32, 64}).find("does not say how far it reaches"), std::string::npos);
}

TEST(Memory, CopyFillAndArenas) {
  auto device = makeCpuDevice({.threads = 2});
  uint32_t arena = device->allocateArena("work", plan::DEVICE, 5 << 20);
  uint32_t *words = nullptr;
  device->write({arena, 0}, 4, [&](uint64_t, std::span<std::byte> piece) { words = reinterpret_cast<uint32_t *>(piece.data()); }); // lent
  EXPECT_EQ(reinterpret_cast<uintptr_t>(words) % 4096, 0u);
  Executor executor(2);
  executor.fill({words, 0x3f800000, 2500000});
  executor.copy({words + 625000, words, 2500000});
  for (size_t i = 0; i < 1250000; ++i) ASSERT_EQ(words[i], 0x3f800000u);
  EXPECT_EQ(words[1250000], 0u);
  const std::vector<uint32_t> values{7, 8, 9};
  std::vector<uint32_t> read(4);
  device->write({arena, 4}, 12, [&](uint64_t, std::span<std::byte> piece) { std::memcpy(piece.data(), values.data(), piece.size()); });
  device->read({arena, 0}, 16, [&](uint64_t, std::span<const std::byte> piece) { std::memcpy(read.data(), piece.data(), piece.size()); });
  EXPECT_EQ(read, (std::vector<uint32_t>{0x3f800000, 7, 8, 9}));
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  device->read({arena, 8}, 5000000, [&](uint64_t first, std::span<const std::byte> piece) { pieces.emplace_back(first, piece.size()); });
  EXPECT_EQ(pieces, (std::vector<std::pair<uint64_t, uint64_t>>{{0, kPieceBytes}, {kPieceBytes, 5000000 - kPieceBytes}}));
  EXPECT_THROW(device->allocateArena("huge", plan::DEVICE, uint64_t(1) << 46), Error);
}

TEST(Target, MissingFeaturesAreNamed) {
  auto device = makeCpuDevice({.threads = 1});
  plan::Target target;
  target.set_cpu("x86-64-v9"), target.add_features("sse2");
  EXPECT_EQ(refusalOf([&] { device->requireTarget(target); }), "");
  target.add_features("made_up_feature");
  std::string sentence = refusalOf([&] { device->requireTarget(target); });
  EXPECT_NE(sentence.find("need made_up_feature;"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("x86-64-v9"), std::string::npos) << sentence;
}

TEST(Target, ChoosesTheDevice) {
  plan::Target target;
  EXPECT_EQ(deviceFor(target, "p.bin").make({.threads = 3})->threads(), 3);
  target.set_kind(plan::Target::CUDA);
  EXPECT_STREQ(deviceFor(target, "p.bin").name, "cuda"); // test/gpu has it
  EXPECT_NE(refusalOf([&] { makeCpuDevice({.threads = 1})->requireTarget(target); }).find("compiled for cuda"), std::string::npos);
  target.set_kind(plan::Target::SIM);
  EXPECT_EQ(refusalOf([&] { deviceFor(target, "p.bin"); }),
            "'p.bin' was compiled for sim, and this zerorun runs plans for cpu and cuda only; compile with --target cpu");
  EXPECT_NE(refusalOf([&] { makeCpuDevice({.threads = 1})->requireTarget(target); }).find("compiled for sim"), std::string::npos);
}

TEST(CpuDevice, ARankThatIsBoundToLittleIsTold) {
  double online = std::thread::hardware_concurrency();
  auto note = [](double processors, int all, int world) {
    return noteOnProcessors({.neighbours = {.all = all, .processors = processors}, .rank = 1, .world = world});
  };
  EXPECT_NE(note(online / 4, 2, 2).find("rank 1 is bound to "), std::string::npos) << note(online / 4, 2, 2);
  EXPECT_NE(note(online / 2, 1, 2).find("among its 1 ranks"), std::string::npos) << "alone on its machine";
  EXPECT_EQ(note(online / 2, 2, 2), "") << "its even share";
  EXPECT_EQ(note(online / 4, 1, 1), "") << "a run of one rank is bound by who wants that";
  EXPECT_EQ(threadsOf({.neighbours = {.all = 2, .processors = 0.5}}), 1);
}

TEST(Options, ThreadsAreChecked) { EXPECT_THROW(makeCpuDevice({.threads = -1}), Error); }

} // namespace

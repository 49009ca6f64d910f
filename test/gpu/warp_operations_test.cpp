// What stands in for a GPU's matrix units against plain loops, with the layouts in the words of the PTX ISA manual.
#include "fibers.h"
#include "warp_operations.h"
#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <random>

using namespace zero;

namespace {

uint16_t half(int value) { return uint16_t(std::bit_cast<uint32_t>(float(value)) >> 16); } // exact for small numbers

} // namespace

// "Matrix Fragments for mma.m16n8k16 with floating point type", .bf16: of a0 … a7 row = groupID for ai where 0 <= i < 2 or 4 <= i < 6, else
// groupID + 8; col = threadID_in_group * 2 + (i & 1), for i >= 4 that + 8. Of b0 … b3 row = threadID_in_group * 2 + (i & 1), for i >= 2
// that
// + 8; col = groupID. Of c0 … c3 row = groupID, for i >= 2 that + 8; col = threadID_in_group * 2 + (i & 1).
TEST(WarpOperations, MultiplyMatrices) {
  std::mt19937 random(1);
  int a[16][16], b[16][8], c[16][8], d[16][8];
  for (auto &row : a)
    for (int &v : row) v = int(random() % 17) - 8;
  for (auto &row : b)
    for (int &v : row) v = int(random() % 17) - 8;
  for (auto &row : c)
    for (int &v : row) v = int(random() % 100);
  test::runGrid(
      {1, 64}, 3, [] {},
      [&] {
        int thread = int(test::kGpuHooks.thread()) % 32, group = thread / 4, inGroup = thread % 4;
        test::MmaRegisters r{};
        for (int i = 0; i < 8; ++i) {
          int row = i < 2 || (4 <= i && i < 6) ? group : group + 8, column = inGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0);
          r.a[i / 2] |= uint32_t(half(a[row][column])) << (i % 2 * 16);
        }
        for (int i = 0; i < 4; ++i) {
          int row = inGroup * 2 + (i & 1) + (i >= 2 ? 8 : 0);
          r.b[i / 2] |= uint32_t(half(b[row][group])) << (i % 2 * 16);
          r.c[i] = float(c[i < 2 ? group : group + 8][inGroup * 2 + (i & 1)]);
        }
        test::kGpuHooks.multiplyMatrices(&r);
        for (int i = 0; i < 4; ++i) d[i < 2 ? group : group + 8][inGroup * 2 + (i & 1)] = int(r.d[i]);
      });
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      int sum = c[m][n];
      for (int k = 0; k < 16; ++k) sum += a[m][k] * b[k][n];
      EXPECT_EQ(d[m][n], sum) << m << ", " << n;
    }
}

// "ldmatrix": threads 8 i … 8 i + 7 name the rows of matrix i. Without .trans thread t receives of row t / 4 the elements 2 (t mod 4) and
// the next; with it the matrix is loaded in column-major format: rows and columns change places.
TEST(WarpOperations, LoadMatrices) {
  uint16_t matrices[4][8][8];
  for (int m = 0; m < 4; ++m)
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 8; ++column) matrices[m][row][column] = uint16_t(m * 64 + row * 8 + column);
  uint32_t words[32][4], columns[32][4];
  test::runGrid(
      {1, 32}, 1, [] {},
      [&] {
        unsigned thread = test::kGpuHooks.thread();
        test::MatrixRegisters r{matrices[thread / 8][thread % 8], {}};
        test::kGpuHooks.loadMatrices(&r);
        std::copy_n(r.words, 4, words[thread]);
        test::kGpuHooks.loadTransposed(&r);
        std::copy_n(r.words, 4, columns[thread]);
      });
  for (int thread = 0; thread < 32; ++thread)
    for (int m = 0; m < 4; ++m) {
      int row = thread / 4, column = thread % 4 * 2;
      EXPECT_EQ(words[thread][m], uint32_t(matrices[m][row][column] | matrices[m][row][column + 1] << 16)) << thread << ", " << m;
      EXPECT_EQ(columns[thread][m], uint32_t(matrices[m][column][row] | matrices[m][column + 1][row] << 16)) << thread << ", " << m;
    }
}

// "Asynchronous Warpgroup Level Matrix Register Fragment" of D of wgmma.mma_async.m64nNk16: row = warp * 16 + groupID for di where i mod 4
// < 2, else + 8; col = i / 4 * 8 + threadID_in_group * 2 + (i & 1). Of the words of A row = warp * 16 + groupID for ai where (i / 2) mod 2
// = 0, else
// + 8; col = k * 16 + i / 4 * 8 + threadID_in_group * 2 + (i & 1). "Shared Memory Matrix Layout", 128-byte swizzling: bits 4 to 6 of an
// address change by bits 7 to 9.
TEST(WarpOperations, ProductsOfFourWarps) {
  struct alignas(1024) Panel {
    uint16_t memory[64 * 64];
    void set(int row, int column, uint16_t v) {
      size_t address = size_t(row) * 128 + size_t(column) * 2;
      memory[(address ^ (address >> 7 & 7) << 4) / 2] = v;
    }
  };
  auto a = std::make_unique<Panel>(), b = std::make_unique<Panel>();
  std::mt19937 random(1);
  std::vector<std::array<int, 64>> left(64), right(64);
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 64; ++column) {
      left[size_t(row)][size_t(column)] = int(random() % 17) - 8, right[size_t(row)][size_t(column)] = int(random() % 17) - 8;
      a->set(row, column, half(left[size_t(row)][size_t(column)])), b->set(row, column, half(right[size_t(row)][size_t(column)]));
    }
  test::runGrid(
      {1, 128}, 3, [] {},
      [&] {
        int thread = int(test::kGpuHooks.thread()), warp = thread / 32, group = thread % 32 / 4, inGroup = thread % 4;
        test::WarpgroupRegisters r{a->memory, b->memory, {}};
        test::WarpgroupSumRegisters s{{}, a->memory, b->memory, {}};
        test::WarpgroupWordsRegisters w{{}, {}, b->memory, {}};
        for (float &c : s.c) c = 3;
        for (float &c : w.c) c = 5;
        for (int k = 0; k < 4; ++k)
          for (int i = 0; i < 8; ++i) {
            int row = warp * 16 + group + i / 2 % 2 * 8, column = k * 16 + i / 4 * 8 + inGroup * 2 + (i & 1);
            w.a[k * 4 + i / 2] |= uint32_t(half(left[size_t(row)][size_t(column)])) << (i % 2 * 16);
          }
        test::kGpuHooks.timesTransposed(&r), test::kGpuHooks.plusTimesTransposed(&s), test::kGpuHooks.plusTimes(&w);
        for (int i = 0; i < 32; ++i) {
          size_t row = size_t(warp * 16 + group + (i % 4 < 2 ? 0 : 8)), column = size_t(i / 4 * 8 + inGroup * 2 + (i & 1));
          int transposed = 0, plain = 0;
          for (size_t k = 0; k < 64; ++k) transposed += left[row][k] * right[column][k], plain += left[row][k] * right[k][column];
          EXPECT_EQ(r.d[i], float(transposed));
          EXPECT_EQ(s.d[i], float(transposed + 3));
          EXPECT_EQ(w.d[i], float(plain + 5));
        }
      });
}

// What was copied is seen by them after a fence; all four warps name the same panels.
TEST(WarpOperations, ProductsOfFourWarpsAfterAFence) {
  alignas(1024) static uint16_t to[2][64 * 64];
  static const uint16_t from[8] = {};
  auto run = [](bool fence, unsigned odd) {
    test::runGrid(
        {1, 128}, 0, [] {},
        [&] {
          unsigned thread = test::kGpuHooks.thread();
          test::kGpuHooks.begin16(to[0] + thread * 8, from, 16);
          test::kGpuHooks.waitForCopies();
          if (fence) test::kGpuHooks.fenceShared();
          test::kGpuHooks.barrier();
          test::WarpgroupRegisters r{to[0], to[thread == odd], {}};
          test::kGpuHooks.timesTransposed(&r);
        });
  };
  run(true, 128);
  EXPECT_THROW(run(false, 128), std::runtime_error);
  EXPECT_THROW(run(true, 77), std::runtime_error);
}

TEST(WarpOperations, PackRoundsToNearestEven) {
  EXPECT_EQ(test::kGpuHooks.pack(1.0f, -2.0f), 0x3f80c000u);
  EXPECT_EQ(test::kGpuHooks.pack(1.00390625f, 1.01171875f), 0x3f803f82u); // halfway between neighbours, each
  EXPECT_EQ(test::kGpuHooks.pack(INFINITY, -INFINITY), 0x7f80ff80u);
}

// Some threads of a warp at one operation and some at another wait without end.
TEST(WarpOperations, AllThreadsTakePart) {
  auto apart = [] {
    test::MmaRegisters r{};
    if (test::kGpuHooks.thread() < 31) test::kGpuHooks.multiplyMatrices(&r);
  };
  EXPECT_THROW(test::runGrid(
                   {1, 32}, 0, [] {}, apart),
               std::runtime_error);
}

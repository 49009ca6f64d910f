// What stands in for a GPU's matrix units against plain loops, with the layouts in the words of the PTX ISA manual.
#include "fibers.h"
#include "warp_operations.h"
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
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

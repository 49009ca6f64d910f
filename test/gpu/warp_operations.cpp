//===- warp_operations.cpp - what the threads of a warp compute together ----------------------------------===//
#include "warp_operations.h"
#include <bit>
#include <stdexcept>

namespace zero::test {
namespace {

constexpr int kWarp = 32;

float widened(uint32_t words, int half) { return std::bit_cast<float>(half ? words & 0xffff0000u : words << 16); }

} // namespace

void multiplyMatrices(void *const *registers) {
  float a[16][16], b[16][8];
  auto of = [&](int thread) -> MmaRegisters & { return *static_cast<MmaRegisters *>(registers[thread]); };
  for (int thread = 0; thread < kWarp; ++thread) {
    int group = thread / 4, pair = thread % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 4; ++i) a[group + i % 2 * 8][pair + i / 2 * 8 + half] = widened(of(thread).a[i], half);
      for (int i = 0; i < 2; ++i) b[pair + i * 8 + half][group] = widened(of(thread).b[i], half);
    }
  }
  for (int thread = 0; thread < kWarp; ++thread)
    for (int i = 0; i < 4; ++i) {
      float sum = of(thread).c[i];
      for (int k = 0; k < 16; ++k) sum += a[thread / 4 + i / 2 * 8][k] * b[k][thread % 4 * 2 + i % 2];
      of(thread).d[i] = sum;
    }
}

static void load(void *const *registers, bool transposed) {
  auto of = [&](int thread) -> MatrixRegisters & { return *static_cast<MatrixRegisters *>(registers[thread]); };
  for (int thread = 0; thread < kWarp; ++thread)
    for (int matrix = 0; matrix < 4; ++matrix) {
      auto element = [&](int column) {
        int row = thread / 4;
        return uint32_t(transposed ? of(matrix * 8 + column).row[row] : of(matrix * 8 + row).row[column]);
      };
      of(thread).words[matrix] = element(thread % 4 * 2) | element(thread % 4 * 2 + 1) << 16;
    }
}

void loadMatrices(void *const *registers) { load(registers, false); }
void loadTransposed(void *const *registers) { load(registers, true); }

namespace {

constexpr int kWarpgroup = 128, kRows = 64, kColumns = 64, kVector = 8;

using Panel = float[kRows][kColumns];

/// Swizzled by 128 bytes: vector v of row r lies where v XOR r mod 8 would.
void read(Panel &panel, const uint16_t *memory) {
  if (reinterpret_cast<uintptr_t>(memory) % 1024) throw std::runtime_error("a panel does not begin at a multiple of 1024 bytes");
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column)
      panel[row][column] = widened(memory[row * kColumns + (column / kVector ^ row % kVector) * kVector + column % kVector], 0);
}

/// Of the thread's element i of a result, or word i of two neighbours: its row and column.
int rowOf(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8; }
int columnOf(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

/// Adds left · right to `sums` of all threads, k in order.
template <typename Registers> void multiply(void *const *registers, const Panel &left, const Panel &right, bool rightTransposed) {
  for (int thread = 0; thread < kWarpgroup; ++thread) {
    auto &mine = *static_cast<Registers *>(registers[thread]);
    for (int i = 0; i < 32; ++i) {
      float sum = 0;
      if constexpr (requires { mine.c; }) sum = mine.c[i];
      int row = rowOf(thread, i), column = columnOf(thread, i);
      for (int k = 0; k < kColumns; ++k) sum += left[row][k] * (rightTransposed ? right[column][k] : right[k][column]);
      mine.d[i] = sum;
    }
  }
}

template <typename Registers> void multiplyPanels(void *const *registers) {
  auto &first = *static_cast<Registers *>(registers[0]);
  for (int thread = 1; thread < kWarpgroup; ++thread)
    if (auto &mine = *static_cast<Registers *>(registers[thread]); mine.a != first.a || mine.b != first.b)
      throw std::runtime_error("threads of a warpgroup name different panels");
  Panel left, right;
  read(left, first.a), read(right, first.b);
  multiply<Registers>(registers, left, right, true);
}

} // namespace

void timesTransposed(void *const *registers) { multiplyPanels<WarpgroupRegisters>(registers); }
void plusTimesTransposed(void *const *registers) { multiplyPanels<WarpgroupSumRegisters>(registers); }

void plusTimes(void *const *registers) {
  Panel left, right;
  const uint16_t *panel = static_cast<WarpgroupWordsRegisters *>(registers[0])->b;
  for (int thread = 0; thread < kWarpgroup; ++thread) {
    auto &mine = *static_cast<WarpgroupWordsRegisters *>(registers[thread]);
    if (mine.b != panel) throw std::runtime_error("threads of a warpgroup name different panels");
    for (int i = 0; i < 32; ++i) left[rowOf(thread, i)][columnOf(thread, i)] = widened(mine.a[i / 2], i % 2);
  }
  read(right, panel);
  multiply<WarpgroupWordsRegisters>(registers, left, right, false);
}

} // namespace zero::test

//===- warp_operations.cpp - what the threads of a warp compute together ----------------------------------===//
#include "warp_operations.h"
#include <bit>

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

} // namespace zero::test

//===- warp_operations.h - what the threads of a warp compute together ------------------------------------===//
// Test double: the registers of each of 32 threads, as the PTX ISA deals the elements of matrices out to them.
#pragma once
#include <cstdint>

namespace zero::test {

/// mma.sync.m16n8k16.row.col.f32.bf16.bf16.f32: d = a · b + c, two elements of a and b in a word, the one of the lower column or row in the
/// lower half.
struct MmaRegisters {
  uint32_t a[4], b[2];
  float c[4], d[4];
};
/// ldmatrix.sync.m8n8.x4.b16: of four matrices of 8 x 8, of which thread t names row t mod 8 of matrix t / 8, two elements of a row each,
/// or with .trans of a column.
struct MatrixRegisters {
  const uint16_t *row;
  uint32_t words[4];
};

/// What four warps multiply (compiler/codegen/ptx/warpgroup.h): panels of 64 x 64 in shared memory, and a result's sums before and after.
struct WarpgroupRegisters {
  const uint16_t *a, *b;
  float d[32];
};
struct WarpgroupSumRegisters {
  float c[32];
  const uint16_t *a, *b;
  float d[32];
};
struct WarpgroupWordsRegisters {
  float c[32];
  uint32_t a[16];
  const uint16_t *b;
  float d[32];
};

/// All at once, of the 128 threads' registers: wgmma.mma_async.m64n64k16, four times. Throws where threads do not name the same panels, or
/// ones that do not begin at 1024 bytes.
void timesTransposed(void *const *registers);
void plusTimesTransposed(void *const *registers);
void plusTimes(void *const *registers);

/// All at once, of the 32 threads' registers. Each product is rounded by the sum it is added to, in the order of k.
void multiplyMatrices(void *const *registers);
void loadMatrices(void *const *registers);
void loadTransposed(void *const *registers);

} // namespace zero::test

// Operands of a product as units read them: registers of 1 KiB, one after the other in the order in which they are used, with
// zeros where a matrix ends.
#pragma once
#include "runtime/device/cpu/half/half.h"
#include <cstdint>

namespace zero::runtime::bf16 {

inline constexpr int64_t kRows = 16, kDepth = 32;    // of a register: rows or columns of the result, elements that are summed over
inline constexpr int64_t kRegister = kRows * kDepth; // its elements of bf16
inline constexpr int64_t kBlock = 2 * kRows;         // rows, and columns, of the result that are computed at once

inline int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
// Elements of an operand once it is packed: of `count` rows of A, or columns of B, over a depth.
inline int64_t packedElements(int64_t count, int64_t depth) { return roundedUp(count, kBlock) * roundedUp(depth, kDepth); }

// An operand in memory: rows of A or columns of B, which are its outer extent, over the depth that is summed over.
struct Operand {
  const Bf16 *data;
  int64_t ld;
  bool contiguous; // in depth; else in the outer extent
  const Bf16 *at(int64_t outer, int64_t depth) const { return data + (contiguous ? outer * ld + depth : depth * ld + outer); }
};

// `count` of its rows or columns from `outer` on, from `depth` on over `depths`: blocks of 32 of them, in each for every 32 elements of
// depth two registers. Those of A hold 16 rows of it; in those of B a row is two elements of depth of each of 16 columns.
void packA(const Operand &operand, int64_t outer, int64_t count, int64_t depth, int64_t depths, Bf16 *to);
void packB(const Operand &operand, int64_t outer, int64_t count, int64_t depth, int64_t depths, Bf16 *to);

} // namespace zero::runtime::bf16

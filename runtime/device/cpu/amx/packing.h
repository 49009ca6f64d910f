// Operands of a product as the matrix unit reads them: registers of 1 KiB, one behind the other in the order in which they are used, with
// zeros where a matrix ends.
#pragma once
#include "runtime/device/cpu/half/half.h"
#include <cstdint>

namespace zero::runtime::amx {

inline constexpr int64_t kRows = 16, kDepth = 32;    // of a register: rows or columns of the result, elements that are summed over
inline constexpr int64_t kRegister = kRows * kDepth; // its elements of bf16
inline constexpr int64_t kBlock = 2 * kRows;         // rows, and columns, of the result that are computed at once

inline int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
// Elements of an operand once it is packed: of `lines` rows of A, or columns of B, over a depth.
inline int64_t packedElements(int64_t lines, int64_t depth) { return roundedUp(lines, kBlock) * roundedUp(depth, kDepth); }

// A matrix in memory, `lines` of which go into the result's rows (A) or columns (B).
struct Source {
  const Bf16 *data;
  int64_t ld;
  bool linesAreRows; // the elements of a line lie beside each other; else those of equal depth do
  const Bf16 *at(int64_t line, int64_t depth) const { return data + (linesAreRows ? line * ld + depth : depth * ld + line); }
};

// `lines` of it from `line` on, from `depth` on over `depths`: blocks of 32 lines, in each for every 32 elements of depth two registers. In
// those of A a row is a line; in those of B a row is two elements of depth of each of 16 lines.
void packA(const Source &source, int64_t line, int64_t lines, int64_t depth, int64_t depths, Bf16 *to);
void packB(const Source &source, int64_t line, int64_t lines, int64_t depth, int64_t depths, Bf16 *to);

} // namespace zero::runtime::amx

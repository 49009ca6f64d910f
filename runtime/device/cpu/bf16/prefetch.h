// Of the operand that is packed next, the lines of its rows in memory, one after another, while others are multiplied.
#pragma once
#include "runtime/device/cpu/bf16/packing.h"

namespace zero::runtime::bf16 {

struct Prefetch {
  const char *row = nullptr;
  int64_t stride = 0, bytes = 0, rows = 0, at = 0;

  Prefetch() = default;
  Prefetch(const Operand &operand, int64_t outer, int64_t count, int64_t depth, int64_t depths)
      : row(reinterpret_cast<const char *>(operand.at(outer, depth))), stride(operand.ld * 2),
        bytes((operand.contiguous ? depths : count) * 2), rows(operand.contiguous ? count : depths) {}
  int64_t lines() const { return rows * (bytes / 64 + 1); }
  [[gnu::always_inline]] inline void next() {
    if (rows <= 0) return;
    __builtin_prefetch(row + at, 0, 2); // into the second cache
    at += 64;
    if (at >= bytes) at = 0, row += stride, --rows;
  }
};

} // namespace zero::runtime::bf16

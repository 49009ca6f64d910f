// How products are handed to the library so that what it packs operands in stays small. In each call, on each thread, it copies blocks of
// up to 384 x 9984 numbers before it multiplies them.
#pragma once
#include <algorithm>
#include <cstdint>

namespace zero::runtime {

inline constexpr uint64_t kPackedDepth = 384, kPackedColumns = 9984;

// Columns of C that are computed in one call at most: a quarter of the library's own block, so that packing takes a quarter as much and the
// other operand is packed little more often.
inline constexpr int64_t kColumnsOfACall = 2496, kFewestColumnsOfACall = 1152, kColumnUnitOfACall = 48;

// How many of `columns` go into each call for `rows` rows of C. Where a product is thin the library multiplies without packing most of it,
// and whether it is it concludes from 1 / rows + 1 / columns >= 0.00196. A cut must not change that, which would change bits and speed:
// between these numbers of rows nothing is cut, and the last call has no fewer columns than are needed with more rows.
inline int64_t columnsOfACall(int64_t rows, int64_t columns) {
  if (columns <= kColumnsOfACall || (rows > 510 && rows < 920)) return std::max<int64_t>(columns, 1);
  int64_t each = kColumnsOfACall;
  auto leavesFew = [&] { return columns % each > 0 && columns % each < kFewestColumnsOfACall; };
  while (leavesFew() && each > kFewestColumnsOfACall) each -= kColumnUnitOfACall;
  return each;
}

// The most bytes that one thread packs operands in for a product of these extents, however it is cut for the threads.
inline uint64_t packingBytes(uint64_t rows, uint64_t columns, uint64_t depth) {
  uint64_t widest = rows > 510 ? kPackedColumns : static_cast<uint64_t>(kColumnsOfACall);
  return std::min(depth, kPackedDepth) * (std::min(columns, widest) + 2 * kColumnUnitOfACall + kPackedDepth) * sizeof(float) + (64 << 10);
}

// The library sums a result in bf16 in f32 first, all of it that one call computes: so much at most, and beside it what operands are packed
// in. No other way of making products of bf16 and f16 takes more.
inline constexpr uint64_t kHalfSumBytes = 6 << 20, kHalfPackingBytes = kHalfSumBytes + (2 << 20);

// How many of `columns` go into each such call for so many rows: all, or about the same number into each of as few calls as there must be.
inline int64_t columnsOfAHalfCall(int64_t rows, int64_t columns) {
  auto most = static_cast<int64_t>(kHalfSumBytes / sizeof(float)) / std::max<int64_t>(rows, 1);
  most = std::max(most / kColumnUnitOfACall * kColumnUnitOfACall, kColumnUnitOfACall);
  if (columns <= most) return columns;
  int64_t calls = (columns + most - 1) / most, each = (columns + calls - 1) / calls;
  return (each + kColumnUnitOfACall - 1) / kColumnUnitOfACall * kColumnUnitOfACall;
}

// Attention is computed in tiles of so many queries and keys; its gradient sums so many keys at a time, or whole heads of so many elements.
inline constexpr int64_t kQueryBlock = 64, kKeyBlock = 512, kGradKeyBlock = 256, kMostAttentionSums = 1 << 20;

// Elements that a thread sums gradients of attention in bf16 or f16 in.
inline int64_t attentionSums(int64_t queries, int64_t keys, int64_t dim) {
  return std::max((kQueryBlock + 2 * kGradKeyBlock) * dim, std::min((queries + 2 * keys) * dim, kMostAttentionSums));
}

// What a thread keeps for attention in bf16 or f16 beside the tiles of f32, at the most: these sums, rows of both sides widened, tiles that
// are rounded, and what is packed of them and summed.
inline uint64_t halfAttentionBytes(int64_t queries, int64_t keys, int64_t dim) {
  int64_t wide = attentionSums(queries, keys, dim) + 2 * (kQueryBlock + std::min(keys, kKeyBlock)) * dim;
  int64_t rounded = 2 * kQueryBlock * kKeyBlock;
  int64_t packed = kQueryBlock * kKeyBlock + (kKeyBlock + kGradKeyBlock) * dim, sums = kQueryBlock * std::max(kKeyBlock, dim);
  return static_cast<uint64_t>(wide + sums) * sizeof(float) + static_cast<uint64_t>(rounded + packed) * 2;
}

} // namespace zero::runtime

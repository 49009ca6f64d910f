//===- attention_tiles.h - how attention is cut into tiles ------------------------------------------------===//
// A block of threads owns a tile of rows of a result (of queries, or of keys where their gradients are made) and goes over the tiles of the
// other side in order. Plain data.
#pragma once
#include "compiler/codegen/ptx/division.h"

namespace zero::codegen {

struct AttentionTiles {
  int64_t own = 16, other = 16;       // rows of a tile of either side
  int64_t buffers = 1;                // of the other side's tiles: with two the next tile comes while one is multiplied
  uint64_t keyBlocks = 0, blocks = 0; // those that own keys come first; all of them
  unsigned sharedBytes = 0;           // of a block
  unsigned resident = 0;              // as in a division

  unsigned strips = 1;    // of 16 rows, that a warp holds of a product (tiles.h)
  bool warpgroup = false; // the block's four warps make a product together (warpgroup_products.cpp)

  static constexpr int64_t kStripRows = 16;
  unsigned warps() const { return unsigned(own / (strips * kStripRows)); }
  /// Tiles in which so many rows are owned.
  int64_t owned(int64_t rows) const { return (rows + own - 1) / own; }
};

/// The largest tiles whose operands fit into a block's shared memory, none longer than what there is to cut. Two buffers of at least 32
/// rows, which the matrix units multiply as fast as memory brings them, are better than one of more. Where warpgroups make products, all
/// tiles have 64 rows.
AttentionTiles attentionTiles(const Attention &attention);

/// Of `heads`, how many are worked on before the others, so that the tiles that blocks go over come from the second-level cache: `bytes` of
/// each head. A whole part of them.
int64_t headsAtOnce(int64_t heads, int64_t bytes);

/// Of a tile in shared memory: what a row holds, in whole steps of a product, and the elements between two rows. These are a few more, so
/// that eight rows' four words at the same place lie in different banks.
struct TileRow {
  int64_t columns, stride;
  unsigned bytes; // of an element
  int64_t rowBytes() const { return stride * bytes; }
};
inline constexpr int64_t kWarpgroupRows = 64; // of a tile that a warpgroup multiplies
inline constexpr int64_t kPanelColumns = 64;  // of bf16, 128 bytes: as much of a row as lies together (tiles.h)
constexpr TileRow tileRow(int64_t columns, bool bf16) {
  int64_t whole = (columns + 15) / 16 * 16;
  return bf16 ? TileRow{whole, whole + 8, 2} : TileRow{columns, columns + 4, 4};
}

} // namespace zero::codegen

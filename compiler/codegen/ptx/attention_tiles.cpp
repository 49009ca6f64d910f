//===- attention_tiles.cpp - how attention is cut into tiles ----------------------------------------------===//
#include "compiler/codegen/ptx/attention_tiles.h"
#include "llvm/Support/MathExtras.h"

namespace zero::codegen {
namespace {

constexpr int64_t kSizes[] = {64, 32, 16}, kFewestRows = 32; // of one of two buffers
// Elements of a row of which two strips of sums, and what they are made of, fit into a thread's registers.
constexpr int64_t kShortRow = 64;

/// Of the tiles that attention_kernels.cpp declares.
int64_t sharedBytes(const Attention &a, int64_t own, int64_t other, int64_t buffers) {
  int64_t ownTiles = a.result == Attention::Output ? 1 : 2, perColumn = a.result == Attention::Keys ? 2 * buffers * other : 0;
  int64_t operands = (ownTiles * own + 2 * buffers * other) * tileRow(a.dim, a.bf16).rowBytes();
  int64_t weights = a.bf16 ? 0 : own * tileRow(other, false).rowBytes(); // the matrix units take them from registers
  return operands + weights + 4 * perColumn;
}

} // namespace

AttentionTiles attentionTiles(const Attention &a) {
  AttentionTiles tiles;
  bool keys = a.result == Attention::Keys;
  tiles.ownLength = keys ? a.keys : a.queries, tiles.otherLength = keys ? a.queries : a.keys;
  tiles.ownHeads = a.batch * (keys ? a.keyHeads : a.heads);
  auto longest = [](int64_t length) { return int64_t(llvm::alignTo(uint64_t(length), AttentionTiles::kStripRows)); };
  [&] {
    for (int64_t buffers : {2, 1})
      for (int64_t own : kSizes)
        for (int64_t other : kSizes) {
          bool inTurn = buffers == 1 || (a.bf16 && other >= kFewestRows && other < tiles.otherLength);
          if (!inTurn || own > longest(tiles.ownLength) || other > longest(tiles.otherLength)) continue;
          if (sharedBytes(a, own, other, buffers) > kStaticShared) continue;
          tiles.own = own, tiles.other = other, tiles.buffers = buffers;
          return;
        }
  }();
  tiles.sharedBytes = unsigned(sharedBytes(a, tiles.own, tiles.other, tiles.buffers));
  if (tiles.buffers == 2 && tiles.own == kSizes[0] && a.dim <= kShortRow) {
    tiles.strips = 2;
    // Registers for as many warps as a multiprocessor holds then: 168 of a thread for twelve, or 255 for eight.
    tiles.resident = (a.result == Attention::Queries ? 12 : 8) / tiles.warps();
  }
  tiles.perHead = int64_t(llvm::divideCeil(uint64_t(tiles.ownLength), uint64_t(tiles.own)));
  tiles.blocks = uint64_t(tiles.perHead * tiles.ownHeads);
  return tiles;
}

} // namespace zero::codegen

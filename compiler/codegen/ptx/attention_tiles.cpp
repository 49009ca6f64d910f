//===- attention_tiles.cpp - how attention is cut into tiles ----------------------------------------------===//
#include "compiler/codegen/ptx/attention_tiles.h"
#include "llvm/Support/MathExtras.h"

namespace zero::codegen {
namespace {

constexpr int64_t kSizes[] = {64, 32, 16}, kFewestRows = 32; // of one of two buffers
// Elements of a row of which two strips of sums, and what they are made of, fit into a thread's registers; and warps that a multiprocessor
// holds then, with 255 registers a thread.
constexpr int64_t kShortRow = 64;
constexpr unsigned kWarps = 8;

/// Of the tiles that attention_kernels.cpp declares, of rows of so many bytes.
int64_t sharedBytes(const Attention &a, int64_t own, int64_t other, int64_t buffers, int64_t rowBytes) {
  bool gradient = a.result == Attention::Gradient;
  int64_t ownTiles = gradient ? 2 : 1, perColumn = gradient ? 2 * buffers * other : 0;
  int64_t operands = (ownTiles * own + 2 * buffers * other) * rowBytes;
  int64_t weights = a.bf16 ? 0 : own * tileRow(other, false).rowBytes(); // the matrix units take them from registers
  return operands + weights + 4 * perColumn;
}

/// A thread holds half a row of each sum and, of a tile of 64 columns, scores and what becomes of them: the constant is what ptxas leaves
/// it without spills (128 and 168 of rows of 64 elements, fewer than 255 of 128).
unsigned warpgroupsAtOnce(const AttentionTiles &tiles, const Attention &a) {
  constexpr int64_t kRegisters = 65536, kThreads = 128, kShared = 227 << 10, kOfSystem = 1 << 10; // of a multiprocessor, of a block
  bool gradient = a.result == Attention::Gradient;
  int64_t registers = gradient ? a.dim + 104 : a.dim / 2 + 96;
  return unsigned(std::min(kRegisters / (kThreads * registers), kShared / (tiles.sharedBytes + kOfSystem)));
}

AttentionTiles warpgroupTiles(const Attention &a) {
  AttentionTiles tiles;
  tiles.own = tiles.other = kWarpgroupRows, tiles.buffers = 2, tiles.warpgroup = true;
  tiles.sharedBytes = unsigned(sharedBytes(a, tiles.own, tiles.other, tiles.buffers, a.dim * int64_t(sizeof(uint16_t))));
  tiles.resident = warpgroupsAtOnce(tiles, a);
  return tiles;
}

AttentionTiles largestTiles(const Attention &a) {
  AttentionTiles tiles;
  bool gradient = a.result == Attention::Gradient;
  // In the gradient either side is owned by some blocks.
  int64_t ownLength = gradient ? std::max(a.queries, a.keys) : a.queries, otherLength = gradient ? ownLength : a.keys;
  int64_t rowBytes = tileRow(a.dim, a.bf16).rowBytes();
  auto longest = [](int64_t length) { return int64_t(llvm::alignTo(uint64_t(length), AttentionTiles::kStripRows)); };
  [&] {
    for (int64_t buffers : {2, 1})
      for (int64_t own : kSizes)
        for (int64_t other : kSizes) {
          bool inTurn = buffers == 1 || (a.bf16 && other >= kFewestRows && other < otherLength);
          if (!inTurn || own > longest(ownLength) || other > longest(otherLength)) continue;
          if (sharedBytes(a, own, other, buffers, rowBytes) > kStaticShared) continue;
          tiles.own = own, tiles.other = other, tiles.buffers = buffers;
          return;
        }
  }();
  tiles.sharedBytes = unsigned(sharedBytes(a, tiles.own, tiles.other, tiles.buffers, rowBytes));
  if (tiles.buffers == 2 && tiles.own == kSizes[0] && a.dim <= kShortRow) {
    tiles.strips = 2;
    tiles.resident = kWarps / tiles.warps();
  }
  return tiles;
}

/// Rows that are whole panels, and no fewer of them than a tile has but for a few.
bool byWarpgroups(const Attention &a) {
  return a.warpgroups && a.bf16 && a.dim % kPanelColumns == 0 && std::min(a.queries, a.keys) > kWarpgroupRows - AttentionTiles::kStripRows;
}

} // namespace

AttentionTiles attentionTiles(const Attention &a) {
  AttentionTiles tiles = byWarpgroups(a) ? warpgroupTiles(a) : largestTiles(a);
  bool gradient = a.result == Attention::Gradient;
  tiles.keyBlocks = gradient ? uint64_t(a.batch * a.keyHeads * tiles.owned(a.keys)) : 0;
  tiles.blocks = tiles.keyBlocks + uint64_t(a.batch * a.heads * tiles.owned(a.queries));
  return tiles;
}

int64_t headsAtOnce(int64_t heads, int64_t bytes) {
  constexpr int64_t kCache = 16 << 20; // fits into either half of an A100's (20 MB) and of an H100's (25 MB)
  int64_t most = std::clamp<int64_t>(kCache / bytes, 1, heads);
  while (heads % most) --most;
  return most;
}

} // namespace zero::codegen

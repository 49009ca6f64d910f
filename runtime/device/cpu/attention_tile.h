// The row loops of attention on one tile of scores [rows x columns] in scratch memory. The tile's leading dimension is a
// multiple of kVector, so whole vectors may be read and written past `columns`.
#pragma once
#include <cstdint>
#include <span>

namespace zero::runtime {

inline constexpr int64_t kVector = 16;

// What is added to the scores of the tile: element (row, column) is at data[row * rowStride + column * columnStride];
// columnStride is 0 or 1.
struct TileMask {
  const float *data; // null: none
  int64_t rowStride, columnStride;
};

struct Tile {
  float *scores;
  int64_t rows, columns, ld;
  float scale, softcap; // softcap: 0 where scores are not capped
  TileMask mask, bias;
  // Row r sees columns from first + r and before end + r, of those there are.
  int64_t first, end;
  bool beyond = false; // rows that see nothing but what is hidden weigh the others, too
};

// The loops as compiled for one level of x86-64.
struct TileLoops {
  const char *level;

  // One step of the streaming softmax: scores become exp(scale * score [capped] + bias + mask - max), where max is the row's largest value
  // over this and all earlier tiles; `max` and `sum` are carried from tile to tile (-inf and 0 at the start). Each row of
  // `out` [rows x dim] is multiplied by what the change of max asks for, unless this is the first tile.
  void (*softmaxTile)(const Tile &tile, float *max, float *sum, float *out, int64_t dim, bool first);

  // For rows whose max is hidden (runtime/plan/hidden.h) after all tiles: scores become 1 where such a row weighs a column and 0 elsewhere,
  // in other rows everywhere, and the ones are added to its `sum`.
  void (*hiddenTile)(const Tile &tile, const float *max, float *sum);

  // After the last tile: out /= sum; lse = max + log(sum), or lseOfHidden(sum). A row that saw nothing gets zeros and -inf.
  void (*finishRows)(int64_t rows, int64_t dim, const float *max, const float *sum, float *out, float *lse);

  // scores become the probabilities P = exp(scale * score [capped] + bias + mask - lse), and `dscores` (the tile dO · V^T, same layout)
  // becomes scale * P * (dscores - delta), times the slope of the cap. Where `dbias` is not null, P * (dscores - delta) is added to it,
  // whose rows lie as those of the tile's bias do. Rows that see nothing but what is hidden are hiddenGradTile's, whose P are equal: each
  // of both leaves zeros in the other's.
  void (*gradTile)(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias);
  void (*hiddenGradTile)(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias);

  // delta[r] = sum over columns of a[r][c] * b[r][c], rows dense.
  void (*rowDots)(int64_t rows, int64_t dim, const float *a, const float *b, float *delta);
};

// Those this processor runs, the best first: the one that is used. The others are there for the tests.
std::span<const TileLoops> tileLoops();

} // namespace zero::runtime

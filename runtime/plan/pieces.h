// Which elements of which parameter lie where: the one place that translates between flat buckets and parameters.
#pragma once
#include "runtime/plan/state.h"
#include <cstdint>
#include <vector>

namespace zero::plan {

// Elements [start, start + count) of a parameter, row-major, lie at elements [at, at + count) of a bucket.
struct Slice {
  int parameter;
  uint64_t start, count, at;
};

uint64_t elementsOf(const Parameter &parameter);
uint64_t elementsOf(const Parameter &parameter, const Piece &piece);
// First index and number of indices of a piece along a dimension.
uint64_t beginOf(const Piece &piece, int dimension);
uint64_t sizeOf(const Parameter &parameter, const Piece &piece, int dimension);

// Whether the optimizer changes it. All buckets that hold some of it say the same.
bool isTrainable(const Plan &plan, const Parameter &parameter);

// The pieces of all parameters by bucket, found once per plan.
class PieceMap {
public:
  explicit PieceMap(const Plan &plan);

  struct Entry {
    int parameter;
    const Piece *piece;
    uint64_t begin, end; // elements of the bucket
  };
  // In the order of the bucket's elements.
  const std::vector<Entry> &piecesOf(int bucket) const { return entries[static_cast<size_t>(bucket)]; }

  // Slices inside `range` of the bucket, in its order. Padding belongs to none; a tile has one for each run of elements that are neighbours
  // in the parameter.
  std::vector<Slice> slices(int bucket, Range range) const;

private:
  const Plan &plan;
  std::vector<std::vector<Entry>> entries;
};

} // namespace zero::plan

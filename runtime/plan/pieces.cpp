#include "runtime/plan/pieces.h"
#include <algorithm>

namespace zero::plan {

uint64_t elementsOf(const Parameter &parameter) {
  uint64_t elements = 1;
  for (int64_t extent : parameter.shape()) elements *= static_cast<uint64_t>(extent);
  return elements;
}

uint64_t beginOf(const Piece &piece, int dimension) { return piece.begin_size() ? piece.begin(dimension) : 0; }

uint64_t sizeOf(const Parameter &parameter, const Piece &piece, int dimension) {
  return piece.size_size() ? piece.size(dimension) : static_cast<uint64_t>(parameter.shape(dimension));
}

uint64_t elementsOf(const Parameter &parameter, const Piece &piece) {
  uint64_t elements = 1;
  for (int d = 0; d < parameter.shape_size(); ++d) elements *= sizeOf(parameter, piece, d);
  return elements;
}

bool isTrainable(const Plan &plan, const Parameter &parameter) {
  return parameter.pieces_size() && plan.buckets(static_cast<int>(parameter.pieces(0).bucket())).trainable();
}

PieceMap::PieceMap(const Plan &plan) : plan(plan), entries(static_cast<size_t>(plan.buckets_size())) {
  for (int p = 0; p < plan.parameters_size(); ++p)
    for (const Piece &piece : plan.parameters(p).pieces()) {
      uint64_t begin = piece.offset_elements();
      entries[piece.bucket()].push_back({p, &piece, begin, begin + elementsOf(plan.parameters(p), piece)});
    }
  for (auto &list : entries) std::stable_sort(list.begin(), list.end(), [](const Entry &a, const Entry &b) { return a.begin < b.begin; });
}

namespace {

// A tile as rows of elements that are neighbours in the parameter as well.
class Rows {
public:
  Rows(const Parameter &parameter, const Piece &piece) : parameter(parameter), piece(piece) {
    // The innermost dimension that is cut; all within it belong to one row.
    for (cut = parameter.shape_size() - 1; cut > 0 && sizeOf(parameter, piece, cut) == extent(cut); --cut) stride *= extent(cut);
    if (cut >= 0) length = sizeOf(parameter, piece, cut) * stride, first = beginOf(piece, cut) * stride, stride *= extent(cut);
  }

  // Where row `row` starts in the parameter.
  uint64_t start(uint64_t row) const {
    uint64_t at = first, step = stride;
    for (int d = cut - 1; d >= 0; --d) {
      uint64_t size = sizeOf(parameter, piece, d);
      at += (beginOf(piece, d) + row % size) * step;
      row /= size;
      step *= extent(d);
    }
    return at;
  }

  uint64_t length = 1; // elements of a row

private:
  uint64_t extent(int dimension) const { return static_cast<uint64_t>(parameter.shape(dimension)); }

  const Parameter &parameter;
  const Piece &piece;
  int cut;
  uint64_t first = 0, stride = 1; // of the first row in its outer index; between indices of the dimension around the cut one
};

} // namespace

std::vector<Slice> PieceMap::slices(int bucket, Range range) const {
  std::vector<Slice> result;
  for (const Entry &entry : piecesOf(bucket)) {
    uint64_t begin = std::max(entry.begin, range.begin), end = std::min(entry.end, range.end);
    if (begin >= end) continue;
    Rows rows(plan.parameters(entry.parameter), *entry.piece);
    for (uint64_t at = begin; at < end;) {
      uint64_t row = (at - entry.begin) / rows.length, skip = (at - entry.begin) % rows.length;
      uint64_t count = std::min(rows.length - skip, end - at);
      result.push_back({entry.parameter, rows.start(row) + skip, count, at});
      at += count;
    }
  }
  return result;
}

} // namespace zero::plan

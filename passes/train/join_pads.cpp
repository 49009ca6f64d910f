//===- join_pads.cpp - gradients of slices, side by side ----------------------------------------------===//
// Boxes are cut apart by planes that go through none of them (guillotine cuts), all those across one dimension first.
#include "passes/train/join_pads.h"
#include <algorithm>

using namespace mlir;

namespace zero::train {
namespace {

constexpr unsigned kMostCuts = 16; // of a cut of a cut: slices of slices are few

struct Box {
  SmallVector<int64_t> low, end; // of each dimension, half open

  bool operator==(const Box &) const = default;
};

struct Piece {
  Box box;
  Value value;
};

class Joining {
public:
  Joining(nn::Build b, bool rows) : b(b), rows(rows) {}

  /// What fills `whole`: the pieces, and zeros. Null, with nothing made but what is dead, if they cannot be cut apart.
  Value fill(const Box &whole, MutableArrayRef<Piece> pieces, unsigned cuts = 0) {
    if (pieces.size() == 1) return surround(pieces[0], whole);
    for (size_t dim = 0; cuts < kMostCuts && dim < whole.low.size(); ++dim) {
      llvm::stable_sort(pieces, [&](const Piece &x, const Piece &y) { return x.box.low[dim] < y.box.low[dim]; });
      SmallVector<size_t> groups = groupsAlong(dim, pieces);
      if (groups.size() > 1) return join(whole, pieces, dim, groups, cuts + 1);
    }
    return {};
  }

private:
  nn::Build b;
  bool rows;

  /// The first of each group of pieces that a plane across `dim` cuts from those before it.
  static SmallVector<size_t> groupsAlong(size_t dim, ArrayRef<Piece> pieces) {
    SmallVector<size_t> groups;
    int64_t end = 0;
    for (const auto &[i, piece] : llvm::enumerate(pieces)) {
      if (piece.box.low[dim] >= end) groups.push_back(i);
      end = std::max(end, piece.box.end[dim]);
    }
    return groups;
  }

  /// Each group fills `whole` up to where the next begins.
  Value join(const Box &whole, MutableArrayRef<Piece> pieces, size_t dim, ArrayRef<size_t> groups, unsigned cuts) {
    Box part = whole;
    SmallVector<Value> parts;
    for (const auto &[i, first] : llvm::enumerate(groups)) {
      bool last = i + 1 == groups.size();
      size_t next = last ? pieces.size() : groups[i + 1];
      part.low[dim] = i ? part.end[dim] : whole.low[dim];
      part.end[dim] = last ? whole.end[dim] : pieces[next].box.low[dim];
      parts.push_back(fill(part, pieces.slice(first, next - first), cuts));
      if (!parts.back()) return {};
    }
    if (rows && dim == 0) return b.b.create<nn::JoinRowsOp>(b.loc, parts);
    return b.b.create<nn::ConcatOp>(b.loc, parts, b.b.getI64IntegerAttr(int64_t(dim)));
  }

  Value surround(const Piece &piece, const Box &whole) {
    if (piece.box == whole) return piece.value;
    SmallVector<int64_t> low, high, interior(whole.low.size(), 0);
    for (size_t i = 0; i < whole.low.size(); ++i) {
      low.push_back(piece.box.low[i] - whole.low[i]);
      high.push_back(whole.end[i] - piece.box.end[i]);
    }
    return b.pad(piece.value, low, high, interior);
  }
};

} // namespace

Value joinPads(nn::Build b, ArrayRef<nn::PadOp> pads, bool rows) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(pads.front()->getResult(0).getType()).getShape();
  Box whole{SmallVector<int64_t>(shape.size(), 0), SmallVector<int64_t>(shape)};
  SmallVector<Piece> pieces;
  for (nn::PadOp pad : pads) {
    Box box{SmallVector<int64_t>(pad.getLow()), whole.end};
    for (auto [end, high] : llvm::zip(box.end, pad.getHigh())) end -= high;
    pieces.push_back({box, pad.getInput()});
  }
  return Joining(b, rows).fill(whole, pieces);
}

} // namespace zero::train

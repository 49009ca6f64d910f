//===- tile.h - parameters in tiles, and what reads them tile by tile ---------------------------------===//
// Private to nn-tile.
#pragma once
#include "passes/train/logits.h"

namespace zero::train {

/// Ends of the tiles along a dimension of `extent` indices of `stride` elements each: the fewest of at most `limit` elements, equal but for
/// the last, rounded up to `unit` indices. One end where nothing has to be cut.
llvm::SmallVector<int64_t> tileEnds(int64_t extent, int64_t stride, int64_t limit, int64_t unit = 16);

/// A parameter that is cut along one dimension.
struct TiledParameter {
  int64_t dim = 0;
  llvm::SmallVector<int64_t> ends;
  llvm::SmallVector<nn::ParameterOp> tiles;

  size_t size() const { return ends.size(); }
  int64_t begin(size_t tile) const { return tile ? ends[tile - 1] : 0; }
  int64_t extent(size_t tile) const { return ends[tile] - begin(tile); }
  mlir::Value get(const nn::Build &b, size_t tile) const;
  llvm::SmallVector<mlir::Value> getAll(const nn::Build &b) const;
};

/// Whether `use`, of a parameter's value, is as a table, as the weights of a product, or as the matrices of groups.
bool canBeTiled(mlir::OpOperand &use);

/// Rows of a table; a product's results side by side or, where the tiles lie along the dimension that is summed over, its partial sums.
/// `user` is replaced and erased.
void tileTable(nn::GatherOp user, const TiledParameter &table);
void tileProduct(nn::MatMulOp user, const TiledParameter &weights);
/// Products of rows with the matrices of their groups, of one tile of groups after another.
void tileGroups(nn::GroupedMatMulOp user, const TiledParameter &matrices);
/// The one matrix of a group among others, put together from its tiles, for tileExperts.
void tileExpert(nn::ReshapeOp user, const TiledParameter &matrix);
/// Products with matrices that are parameters of their own and all cut alike: of one tile of each after another, as tileProduct. Nothing
/// where they are not.
void tileExperts(nn::GroupedMatMulOp user);

/// The loss is replaced, and the whole path to it erased. Backward keeps the logits of tiles or, if `again`, computes them again.
void tileLoss(nn::MatMulOp product, const Logits &logits, const TiledParameter &weights, bool again);

} // namespace zero::train

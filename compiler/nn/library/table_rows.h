//===- table_rows.h - rows of a table, where only these need to move ------------------------------===//
// A model reads few rows of the table of its vocabulary, and its gradient has as few beside what an output projection adds. In nn a launch
// of its own does either (nn-table-rows); the shard phase makes the rows travel between ranks in place of the table.
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::nn {

/// Attribute of a launch (table [rows, c], indices) -> rows of the table, and of one ([onto [rows, c],] indices, rows) -> [rows, c] that
/// adds them to `onto`, or to zeros.
inline constexpr const char *kLooksUp = "nn.looks_up", *kAddsRows = "nn.adds_rows";

/// Operands of a launch that adds rows; `onto` is null where there is none.
struct AddedRows {
  mlir::Value onto, indices, rows;
};
inline AddedRows addedRows(LaunchOp launch) {
  auto in = launch.getInputs();
  return {in.size() == 3 ? in[0] : mlir::Value(), in[in.size() - 2], in.back()};
}

/// What a lookup adds to the rows of a table, by index.
struct RowUpdates {
  mlir::Value indices, updates;
};
/// Of a tile of a table that begins with row `begin`, in terms of the whole table: the indices into that, and the updates of all of them.
/// Null if the lookup does not have the form that nn-tile gives it, in which an index outside the tile adds zeros to its first row.
inline std::optional<RowUpdates> updatesOfTable(ScatterAddOp scatter, int64_t begin) {
  auto local = scatter.getIndices().getDefiningOp<SelectOp>(), masked = scatter.getUpdates().getDefiningOp<SelectOp>();
  if (!local || !masked) return std::nullopt;
  if (begin == 0) return RowUpdates{local.getOnTrue(), masked.getOnTrue()};
  auto shifted = local.getOnTrue().getDefiningOp<SubOp>();
  auto by = shifted ? shifted.getRhs().getDefiningOp<ConstantOp>() : ConstantOp();
  auto values = by ? llvm::dyn_cast<mlir::DenseIntElementsAttr>(by.getValue()) : mlir::DenseIntElementsAttr();
  if (!values || !values.isSplat() || values.getSplatValue<llvm::APInt>().getSExtValue() != begin) return std::nullopt;
  return RowUpdates{shifted.getLhs(), masked.getOnTrue()};
}

/// Indices travel between ranks as f32, which holds all integers up to this.
inline constexpr int64_t kMostTableRows = int64_t(1) << 24;

} // namespace zero::nn

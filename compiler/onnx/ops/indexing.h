//===- indexing.h - what lookups and scatters share ---------------------------------------------===//
#pragma once
#include "compiler/onnx/importer.h"

namespace zero::onnx {

/// Rows of `table` (dimension 0) at non-negative `indices`: a slice where the indices are known and evenly spaced.
Val rowsAt(NodeContext &c, const Val &table, const Val &indices);

/// One index into the flattened dimensions `dims` per tuple in the last dimension of `indices`.
Val linearIndex(NodeContext &c, const Val &indices, Shape dims);

} // namespace zero::onnx

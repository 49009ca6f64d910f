//===- indexing.h - what lookups, scatters and selections share ---------------------------------------------===//
#pragma once
#include "compiler/onnx/importer.h"

namespace zero::onnx {

/// Rows of `table` (dimension 0) at non-negative `indices`: a slice where the indices are known and evenly spaced.
Val rowsAt(NodeContext &c, const Val &table, const Val &indices);

/// The k largest or smallest along an axis, of equal ones the first, and their places. Each is read by its place, so that it has the
/// gradient alone. Nothing after a report.
Vals topAlong(NodeContext &c, const Val &x, int64_t axis, int64_t k, bool largest);

/// The product along one axis, of which 1 is left: of its first half and its second, again and again.
Val productAlong(NodeContext &c, Val x, int64_t axis);

/// One index into the flattened dimensions `dims` per tuple in the last dimension of `indices`.
Val linearIndex(NodeContext &c, const Val &indices, Shape dims);

/// Nodes that by_mask.h marks: data with the source's elements, or rows, in their order where the mask holds; source; from its first
/// element on, if that is said.
Vals putByMask(NodeContext &c);
/// x [batch, length, n] at the first place of each sample where the mask holds, or the last; which; the shape [batch, -1, n] of all of
/// them.
Vals pickByMask(NodeContext &c);

} // namespace zero::onnx

//===- masked_rows.h - rows that a mask of the data chooses ----------------------------------------===//
// How many places of a mask hold is known when a step runs, and shapes are known before. So all places are taken, in order: what is
// computed row by row is computed for rows that nobody asked for, too, and the mask leaves these out where the rows are put back. This is
// how experts are written that look their tokens up, "rows = nonzero(mask)", "y[rows] += expert(x[rows])". Every value on the way says
// along which dimension not all rows count; what would mix rows is refused.
#pragma once
#include "compiler/onnx/emit.h"

namespace zero::onnx {

struct NodeContext;

struct MaskedRows {
  Val mask;    // of booleans, in its own shape
  int64_t dim; // of the value, as long as the mask has elements; kCount: the value is made of their number
  static constexpr int64_t kCount = -1;
};

/// What NonZero gives for a mask that is not known: all its places, [rank, elements].
Val allPlaces(NodeContext &c, const Val &mask);

/// Runs the handler of a node that reads such values, and says of its results which they are.
Vals handleMaskedRows(NodeContext &c, Vals (*handler)(NodeContext &));

} // namespace zero::onnx

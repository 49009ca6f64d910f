//===- join_pads.h - gradients of slices, side by side ------------------------------------------------===//
#pragma once
#include "compiler/nn/build.h"

namespace zero::train {

/// The sum of pads with zeros of one shape, none of which has zeros between its elements, such as the gradients of slices of one tensor.
/// Where they overlap nowhere it is what they pad, joined along one dimension after another, with zeros only where there is nothing: each
/// element is moved once, however many slices there are. Null where they cannot be cut apart so, as windows over each other cannot.
/// `rows`: what they pad are rows of memory (nn.rows), which nn.join_rows joins.
mlir::Value joinPads(nn::Build b, llvm::ArrayRef<nn::PadOp> pads, bool rows);

} // namespace zero::train

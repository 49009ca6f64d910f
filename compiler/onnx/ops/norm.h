//===- norm.h - what norms of vectors share ------------------------------------------------------===//
#pragma once
#include "compiler/onnx/importer.h"

namespace zero::onnx {

/// The root of a sum of squares. The gradient of a norm is zero where all is zero, as in PyTorch, and that of a root is not a number there.
Val rootOfSquares(NodeContext &c, const Val &sum);

} // namespace zero::onnx
